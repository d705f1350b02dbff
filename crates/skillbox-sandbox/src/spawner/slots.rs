//! Sandboxes made ahead.
//!
//! A slot is a child that has done everything that depends on the profile alone, and waits for a run: its workspace,
//! its skill, its inputs and its command. It is used by one run and never again; what comes after it is made while
//! the spawner has nothing else to do. A server has as many as its load of the last moments could use.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::birth::{Birth, Newborn};
use super::protocol::{Orders, Part, PartStep, has_pid_namespace};
use super::set_up::Spawning;
use crate::child;
use crate::kernel::socket;
use crate::kernel::wait::{Patience, reap};
use crate::plan::{Command, Phase, Step};

/// A kind of run that was not asked for so long is forgotten, with its slots.
const IDLE: Duration = Duration::from_secs(30);

/// Where another slot still waits, a used one is replaced only after so long without a launch and without the end of a
/// run: making it takes as much of the processor as a short run, and would take it from the run that has just begun, or
/// from whoever brings its result to the caller.
const CALM: Duration = Duration::from_millis(3);

/// As many as a kind of run has at least: one to be taken, and one that waits meanwhile.
const PAIR: usize = 2;

/// The slots of a spawner.
#[derive(Default)]
pub(super) struct Slots {
    /// As many as may be parked at once; none are made by themselves when 0.
    limit: usize,
    last_change: Option<Instant>,
    parked: Vec<Slot>,
    recipes: Vec<Recipe>,
}

/// A child that waits.
struct Slot {
    recipe: Rc<[Step]>,
    /// None once a run has it.
    child: Option<Newborn>,
    /// Where the run is sent.
    bell: OwnedFd,
}

/// The steps that slots of one kind are made by.
struct Recipe {
    steps: Rc<[Step]>,
    /// How many are kept parked.
    wanted: usize,
    last_used: Instant,
}

/// The steps that a slot knows before there is a run for it.
fn ahead(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| !belongs_to_the_run(step))
}

fn belongs_to_the_run(step: &Step) -> bool {
    step.phase == Phase::Release && !step.op.is_rehearsed()
}

/// Whether two steps do the same, whatever number they have in their plans.
fn is_like(one: &Step, other: &Step) -> bool {
    one.op == other.op && one.phase == other.phase && one.need == other.need && one.layers == other.layers
}

/// The part of the plan that a slot does not know: where it comes to what it does know, only the number.
fn part<'a>(orders: &'a Orders<'_>) -> Part<'a> {
    let release = orders.steps.iter().filter(|step| step.phase == Phase::Release);
    let steps = release.map(|step| match belongs_to_the_run(step) {
        true => PartStep::Brought(Cow::Borrowed(step)),
        false => PartStep::Known { number: step.number },
    });
    Part {
        steps: steps.collect(),
        command: Cow::Borrowed(&orders.command),
    }
}

impl Slots {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// From now on so many may be parked; those beyond are let go.
    pub fn keep(&mut self, limit: u8) {
        self.limit = usize::from(limit);
        self.parked.truncate(self.limit);
        for recipe in &mut self.recipes {
            recipe.wanted = recipe.wanted.min(self.limit);
        }
    }

    /// Asks for one slot for these steps.
    pub fn ask_for(&mut self, steps: &[Step]) {
        self.recipe(steps).wanted = PAIR.min(self.limit.max(1));
    }

    fn recipe(&mut self, steps: &[Step]) -> &mut Recipe {
        let known = self.recipes.iter().position(|recipe| {
            let mut wanted = ahead(steps);
            let alike = |step: &Step| wanted.next().is_some_and(|other| is_like(step, other));
            recipe.steps.iter().all(alike) && wanted.next().is_none()
        });
        let index = known.unwrap_or_else(|| {
            self.recipes.push(Recipe {
                steps: ahead(steps).cloned().collect(),
                wanted: 0,
                last_used: Instant::now(),
            });
            self.recipes.len() - 1
        });
        &mut self.recipes[index]
    }

    /// Takes a slot for these steps and learns from whether there was one.
    fn take(&mut self, steps: &[Step]) -> Option<Slot> {
        if self.limit == 0 && self.parked.is_empty() {
            return None;
        }
        self.last_change = Some(Instant::now());
        let limit = self.limit;
        let recipe = self.recipe(steps);
        recipe.last_used = Instant::now();
        let wanted = Rc::clone(&recipe.steps);
        let found = self.parked.iter().position(|slot| Rc::ptr_eq(&slot.recipe, &wanted));
        let recipe = self.recipe(steps);
        if limit == 0 {
            recipe.wanted = 0;
        } else if found.is_none() {
            recipe.wanted = (recipe.wanted + 1).max(PAIR).min(limit);
        }
        found.map(|index| self.parked.swap_remove(index))
    }

    /// The recipe that lacks a slot.
    fn lacking(&self) -> Option<usize> {
        if self.parked.len() >= self.limit.max(1) {
            return None;
        }
        self.recipes.iter().position(|recipe| {
            let have = self
                .parked
                .iter()
                .filter(|slot| Rc::ptr_eq(&slot.recipe, &recipe.steps));
            have.count() < recipe.wanted
        })
    }

    /// Whether a slot should be made.
    pub fn needs_preparation(&self) -> bool {
        self.lacking().is_some()
    }

    /// Notes that a run is over.
    pub fn ended(&mut self) {
        self.last_change = Some(Instant::now());
    }

    /// How long to leave the processor to the runs before the next slot is made.
    pub fn until_calm(&self) -> Duration {
        let is_urgent = self.lacking().is_some_and(|index| {
            let steps = &self.recipes[index].steps;
            !self.parked.iter().any(|slot| Rc::ptr_eq(&slot.recipe, steps))
        });
        match self.last_change {
            Some(last) if !is_urgent => CALM.saturating_sub(last.elapsed()),
            _ => Duration::ZERO,
        }
    }

    /// How long until something can be forgotten.
    pub fn until_idle(&self) -> Option<Duration> {
        let oldest = self.recipes.iter().map(|recipe| recipe.last_used).min()?;
        Some(IDLE.saturating_sub(oldest.elapsed()))
    }

    /// Forgets what was not used for long.
    pub fn forget_idle(&mut self) {
        self.recipes.retain(|recipe| recipe.last_used.elapsed() < IDLE);
        let recipes = &self.recipes;
        let is_known = |slot: &mut Slot| recipes.iter().any(|recipe| Rc::ptr_eq(&recipe.steps, &slot.recipe));
        self.parked.retain_mut(is_known);
    }
}

impl Spawning {
    /// Hands the run to a parked child, where one fits and lives.
    pub(super) fn release_parked(
        &mut self,
        orders: &Orders<'_>,
        mounts: &[Option<OwnedFd>],
        stdio: &[OwnedFd; 3],
        answers: &OwnedFd,
    ) -> Option<Newborn> {
        if !has_pid_namespace(&orders.steps) {
            // Its reaper would have to watch the server, which it does not know while it waits.
            return None;
        }
        let slot = self.slots.take(&orders.steps)?;
        // A template that was built anew shows that the host changed under the slot.
        let is_current = self.template_number(&orders.steps).is_ok_and(|now| slot.is_of(now));
        if !is_current {
            return None;
        }
        let mut descriptors = vec![answers.as_fd()];
        descriptors.extend(stdio.iter().map(AsFd::as_fd));
        descriptors.extend(mounts.iter().flatten().map(AsFd::as_fd));
        slot.ring(orders, &descriptors)
    }

    /// Makes the slot that is lacking. The child never returns.
    pub(super) fn park_one(&mut self) {
        let Some(index) = self.slots.lacking() else { return };
        let steps = Rc::clone(&self.slots.recipes[index].steps);
        match self.park(&steps) {
            Some(slot) => self.slots.parked.push(slot),
            // The launch that comes finds out why, and tells it.
            None => self.slots.recipes[index].wanted = 0,
        }
    }

    fn park(&mut self, steps: &Rc<[Step]>) -> Option<Slot> {
        let (bell, theirs) = socket::pair().ok()?;
        let orders = Orders {
            steps: Cow::Borrowed(steps),
            command: Cow::Owned(Command {
                argv: Vec::new(),
                env: Vec::new(),
            }),
        };
        match self.give_birth(steps).ok()? {
            Birth::Parent(child) => Some(Slot {
                recipe: Rc::clone(steps),
                child: Some(child),
                bell,
            }),
            Birth::Child { doors } => {
                let mut belongings = self.belongings(Vec::new());
                belongings.doors = doors;
                child::park(&orders, belongings, theirs)
            }
        }
    }
}

impl Slot {
    /// Whether the child lives, and stands on this template.
    fn is_of(&self, template: Option<u64>) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.child.as_ref().is_some_and(|child| {
            let lives = poll(&mut [PollFd::new(&child.pidfd, PollFlags::IN)], Some(&at_once)) == Ok(0);
            lives && child.template == template
        })
    }

    /// Sends the run. A slot that does not take it is gone.
    fn ring(mut self, orders: &Orders<'_>, descriptors: &[BorrowedFd<'_>]) -> Option<Newborn> {
        let message = postcard::to_stdvec(&part(orders));
        let message = message.ok().filter(|message| message.len() <= socket::MAX_MESSAGE)?;
        if descriptors.len() > socket::MAX_DESCRIPTORS {
            return None;
        }
        socket::send(self.bell.as_fd(), &message, descriptors).ok()?;
        self.child.take()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(child) = &self.child else { return };
        if let Some(pid) = Pid::from_raw(child.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
        // Its control group can be removed only once it is gone.
        let _ = reap(Some(child.pid), Patience::Wait);
    }
}
