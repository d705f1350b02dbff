"""Tokens → the syntax tree. The grammar is written out in references/grammar.md."""

from __future__ import annotations

import difflib

from . import containers, paths, scalars, streams, texts
from .access import Identity, Index, Iterate, Literal, Node, Optional, Recurse, Slice, Variable
from .catalogue import FUNCTIONS
from .flow import (
    Alternative,
    Bind,
    Call,
    Comma,
    Condition,
    Logic,
    MakeArray,
    MakeObject,
    Negation,
    Operation,
    Pipe,
    Reduce,
    Template,
)
from .formats import FORMATS
from .lexer import QueryError, Token, TokenStream, parse_number

# Importing these modules fills the catalogue.
CATALOGUE_MODULES = (containers, paths, scalars, streams, texts)

MAX_DEPTH = 100
CONSTANTS = {"null": None, "true": True, "false": False}
KEYWORDS = frozenset({"and", "as", "elif", "else", "end", "if", "or", "reduce", "then"})
UNSUPPORTED = frozenset({"catch", "def", "foreach", "import", "include", "input", "inputs", "label", "try", "until"})
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
# Operators from loose to tight.
LEVELS = (("or",), ("and",), COMPARISONS, ("+", "-"), ("*", "/", "%"))


class Parser(TokenStream):
    """Recursive descent, one method for each level of the grammar; the variables named are bound from outside."""

    def __init__(self, text: str, variables: frozenset[str] = frozenset()) -> None:
        super().__init__(text)
        self.bound = [variables]
        self.depth = 0

    def parse_all(self) -> Node:
        """Parse the whole text."""
        if self.token.kind == "end":
            return Identity()
        node = self.parse_pipe()
        if self.token.kind != "end":
            raise QueryError(f"unexpected {self.token.text!r}", self.token.position)
        return node

    def parse_pipe(self) -> Node:
        """Parse `a | b`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise QueryError(f"the query is nested deeper than {MAX_DEPTH} levels", self.token.position)
        left = self.parse_comma()
        if self.accept("|"):
            left = Pipe(left, self.parse_pipe())
        self.depth -= 1
        return left

    def parse_binding(self) -> str:
        """Parse the `$name` of a binding."""
        token = self.advance()
        if token.kind != "variable":
            raise QueryError(f"expected a variable such as $x but found {token.text!r}", token.position)
        return token.text[1:]

    def parse_comma(self) -> Node:
        """Parse `a, b`."""
        node = self.parse_alternative()
        while self.accept(","):
            node = Comma(node, self.parse_alternative())
        return node

    def parse_alternative(self) -> Node:
        """Parse `a // b`, which groups to the right."""
        node = self.parse_binary(0)
        return Alternative(node, self.parse_alternative()) if self.accept("//") else node

    def parse_binary(self, level: int) -> Node:
        """Parse the operators of one level, which group to the left; comparisons do not chain."""
        if level == len(LEVELS):
            return self.parse_operand()
        node = self.parse_binary(level + 1)
        while operator := self.accept(*LEVELS[level]):
            kind = Logic if operator.text in ("and", "or") else Operation
            node = kind(operator.text, node, self.parse_binary(level + 1))
            if LEVELS[level] is COMPARISONS and self.at(*COMPARISONS):
                raise QueryError("comparisons cannot be chained; use and", self.token.position)
        return node

    def parse_operand(self) -> Node:
        """Parse `-a`, a term, or `a as $x | b`, which reaches to the end of the pipe."""
        if self.accept("-"):
            return Negation(self.parse_postfix())
        node = self.parse_postfix()
        if not self.accept("as"):
            return node
        name = self.parse_binding()
        self.expect("|")
        self.bound.append(self.bound[-1] | {name})
        body = self.parse_pipe()
        self.bound.pop()
        return Bind(node, name, body)

    def parse_postfix(self) -> Node:
        """Parse a term with `.name`, `[…]` and `?` after it."""
        node = self.parse_term()
        while True:
            if self.token.kind == "field":
                node = Index(node, Literal(self.advance().text[1:]))
            elif self.at("[") or (self.at(".") and self.tokens[self.place + 1].text in ("[", '"')):
                self.accept(".")
                node = self.parse_brackets(node) if self.at("[") else Index(node, self.parse_string("@text"))
            elif self.accept("?"):
                node = Optional(node)
            else:
                return node

    def parse_brackets(self, source: Node) -> Node:
        """Parse `[]`, `[key]` and `[from:to]`."""
        self.expect("[")
        if self.accept("]"):
            return Iterate(source)
        start = None if self.at(":") else self.parse_pipe()
        if self.accept(":"):
            end = None if self.at("]") else self.parse_pipe()
            if start is None and end is None:
                raise QueryError("a slice needs a bound", self.token.position)
            self.expect("]")
            return Slice(source, start, end)
        self.expect("]")
        assert start is not None
        return Index(source, start)

    def parse_term(self) -> Node:
        """Parse what stands by itself."""
        token = self.token
        if token.kind == "number":
            return Literal(parse_number(self.advance()))
        if token.kind == "open":
            return self.parse_string("@text")
        if token.kind == "format":
            return self.parse_format()
        if token.kind == "variable":
            return self.parse_variable()
        if token.kind == "field":
            return Index(Identity(), Literal(self.advance().text[1:]))
        if self.accept(".."):
            return Recurse()
        if self.accept("."):
            return Index(Identity(), self.parse_string("@text")) if self.token.kind == "open" else Identity()
        if self.accept("("):
            node = self.parse_pipe()
            self.expect(")")
            return node
        if self.accept("["):
            body = None if self.at("]") else self.parse_pipe()
            self.expect("]")
            return MakeArray(body)
        if self.at("{"):
            return self.parse_object()
        if token.kind == "word":
            return self.parse_word()
        raise QueryError(f"unexpected {token.text!r}", token.position)

    def parse_variable(self) -> Node:
        """Parse a use of `$name`."""
        token = self.advance()
        if token.text[1:] not in self.bound[-1]:
            raise QueryError(f"{token.text} is not defined", token.position)
        return Variable(token.text[1:])

    def parse_format(self) -> Node:
        """Parse `@csv`, alone or before a string."""
        token = self.advance()
        if token.text not in FORMATS:
            raise QueryError(f"unknown format {token.text}; known: {' '.join(FORMATS)}", token.position)
        return self.parse_string(token.text) if self.token.kind == "open" else Template([Identity()], token.text)

    def parse_string(self, style: str) -> Node:
        """Parse a string with its interpolations."""
        self.advance()
        pieces: list[str | Node] = []
        while self.token.kind != "close":
            token = self.advance()
            if token.kind == "piece":
                pieces.append(token.text)
                continue
            pieces.append(self.parse_pipe())
            if self.token.kind != "finish":
                raise QueryError(f"unexpected {self.token.text!r}", self.token.position)
            self.advance()
        self.advance()
        if all(isinstance(piece, str) for piece in pieces):
            return Literal("".join(str(piece) for piece in pieces))
        return Template(pieces, style)

    def parse_word(self) -> Node:
        """Parse a constant, a keyword construct or a call."""
        token = self.advance()
        if token.text in CONSTANTS:
            return Literal(CONSTANTS[token.text])
        if token.text == "if":
            return self.parse_condition()
        if token.text == "reduce":
            return self.parse_reduce()
        if token.text in UNSUPPORTED:
            raise QueryError(f"{token.text} of jq is not part of this language", token.position)
        if token.text in KEYWORDS:
            raise QueryError(f"unexpected {token.text!r}", token.position)
        return self.parse_call(token)

    def parse_call(self, token: Token) -> Node:
        """Parse `name` and `name(a; b)`."""
        arguments = []
        if self.accept("("):
            arguments.append(self.parse_pipe())
            while self.accept(";"):
                arguments.append(self.parse_pipe())
            self.expect(")")
        if (token.text, len(arguments)) in FUNCTIONS:
            return Call(token.text, arguments)
        arities = sorted(arity for name, arity in FUNCTIONS if name == token.text)
        if arities:
            wanted = " or ".join(map(str, arities))
            raise QueryError(f"{token.text} takes {wanted} arguments, not {len(arguments)}", token.position)
        near = ", ".join(difflib.get_close_matches(token.text, sorted({name for name, _ in FUNCTIONS}), n=3))
        raise QueryError(f"unknown function {token.text}" + (f"; did you mean {near}?" if near else ""), token.position)

    def parse_condition(self) -> Node:
        """Parse `if a then b elif c then d else e end`; a missing else is the identity."""
        test = self.parse_pipe()
        self.expect("then")
        yes = self.parse_pipe()
        if self.accept("elif"):
            return Condition(test, yes, self.parse_condition())
        no = self.parse_pipe() if self.accept("else") else Identity()
        self.expect("end")
        return Condition(test, yes, no)

    def parse_reduce(self) -> Node:
        """Parse `reduce source as $x (start; update)`."""
        source = self.parse_postfix()
        self.expect("as")
        name = self.parse_binding()
        self.expect("(")
        start = self.parse_pipe()
        self.expect(";")
        self.bound.append(self.bound[-1] | {name})
        update = self.parse_pipe()
        self.bound.pop()
        self.expect(")")
        return Reduce(source, name, start, update)

    def parse_object(self) -> Node:
        """Parse `{a, "b": 1, (.c): 2, $d}`."""
        self.expect("{")
        entries: list[tuple[Node, Node]] = []
        while not self.at("}"):
            entries.append(self.parse_entry())
            if not self.accept(","):
                break
        self.expect("}")
        return MakeObject(entries)

    def parse_entry(self) -> tuple[Node, Node]:
        """Parse one entry of an object."""
        token = self.token
        if token.kind == "variable":
            variable = self.parse_variable()
            return Literal(token.text[1:]), variable
        if self.accept("("):
            key = self.parse_pipe()
            self.expect(")")
            self.expect(":")
            return key, self.parse_entry_value()
        if token.kind == "open":
            key = self.parse_string("@text")
        elif token.kind == "word":
            key = Literal(self.advance().text)
        else:
            raise QueryError(f"unexpected {token.text!r} in an object", token.position)
        return (key, self.parse_entry_value()) if self.accept(":") else (key, Index(Identity(), key))

    def parse_entry_value(self) -> Node:
        """Parse the value of an entry; a comma ends it, and a pipe may follow."""
        node = self.parse_alternative()
        return Pipe(node, self.parse_entry_value()) if self.accept("|") else node
