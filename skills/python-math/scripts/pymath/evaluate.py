"""A calculator over Python's own expression grammar that runs none of Python's code."""

from __future__ import annotations

import ast
import re
from fractions import Fraction

from .functions import CONSTANTS, FUNCTIONS, power
from .numbers import CalculationError, Number, checked

__all__ = ["CalculationError", "Evaluator"]

MAX_LENGTH = 4000
LITERAL = re.compile(r"(\d[\d_]*)?(\.[\d_]*)?([eE][+-]?(\d{1,4}))?", re.ASCII)


class Evaluator:
    """Walks the syntax tree; anything that is not arithmetic is refused."""

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.source = ""

    def evaluate(self, expression: str) -> Number:
        """Evaluate one expression."""
        if len(expression) > MAX_LENGTH:
            raise CalculationError(f"the expression is longer than {MAX_LENGTH} characters")
        self.source = expression
        try:
            tree = ast.parse(expression, mode="eval")
            return self.visit(tree.body)
        except (SyntaxError, ValueError, MemoryError) as error:
            # Python's own words differ from version to version.
            raise CalculationError("the expression is malformed") from error
        except RecursionError as error:
            raise CalculationError("the expression is nested too deeply") from error
        except ZeroDivisionError as error:
            raise CalculationError("division by zero") from error

    def visit(self, node: ast.expr) -> Number:
        """Evaluate one node of the tree."""
        if isinstance(node, ast.Constant):
            return self.literal(node)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.Name):
            return self.constant(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        raise CalculationError(f"{type(node).__name__} is not arithmetic")

    def literal(self, node: ast.Constant) -> Number:
        """Read a number from its own spelling, so that 0.1 is exactly one tenth."""
        spelling = ast.get_source_segment(self.source, node) or ""
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            raise CalculationError(f"{spelling} is not a number")
        if isinstance(node.value, int):
            return Number(checked(Fraction(node.value)))
        if not LITERAL.fullmatch(spelling):
            raise CalculationError(f"{spelling} has an exponent beyond 9999")
        return Number(checked(Fraction(spelling.replace("_", ""))))

    def unary(self, node: ast.UnaryOp) -> Number:
        """Apply a sign."""
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.USub):
            return Number(-operand.value, operand.exact)
        if isinstance(node.op, ast.UAdd):
            return operand
        raise CalculationError(f"{type(node.op).__name__} is not arithmetic")

    def binary(self, node: ast.BinOp) -> Number:
        """Apply one of the seven operators."""
        left, right = self.visit(node.left), self.visit(node.right)
        exact = left.exact and right.exact
        if isinstance(node.op, ast.Pow):
            return power(left, right, self.digits)
        if isinstance(node.op, ast.Add):
            value = left.value + right.value
        elif isinstance(node.op, ast.Sub):
            value = left.value - right.value
        elif isinstance(node.op, ast.Mult):
            value = left.value * right.value
        elif isinstance(node.op, ast.Div):
            value = left.value / right.value
        elif isinstance(node.op, ast.FloorDiv):
            value = Fraction(left.value // right.value)
        elif isinstance(node.op, ast.Mod):
            value = left.value % right.value
        else:
            raise CalculationError(f"{type(node.op).__name__} is not arithmetic")
        return Number(checked(value), exact)

    def constant(self, node: ast.Name) -> Number:
        """Look up a named constant."""
        if node.id not in CONSTANTS:
            raise CalculationError(f"unknown name {node.id!r}; known: {', '.join(sorted(CONSTANTS))}")
        return CONSTANTS[node.id](self.digits)

    def call(self, node: ast.Call) -> Number:
        """Call one of the known functions."""
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            name = ast.get_source_segment(self.source, node.func)
            raise CalculationError(f"unknown function {name!r}; known: {', '.join(sorted(FUNCTIONS))}")
        if node.keywords:
            raise CalculationError("functions take no named arguments")
        function = FUNCTIONS[node.func.id]
        if not function.fewest <= len(node.args) <= function.most:
            raise CalculationError(f"{node.func.id} does not take {len(node.args)} arguments")
        return function.apply([self.visit(argument) for argument in node.args], self.digits)
