"""A build-out problem as a mixed-integer linear program.

Purchases and reservations are whole numbers that all scenarios share. The use of capacity, what is
rented and what is missing are chosen for each scenario. Costs are dollars over all months, weighted
by probability; with `cvar_weight`, the mean cost of the worst scenarios counts as well.
"""

from collections.abc import Iterator
from math import inf

from tenfold.decide.capacity.buildout.problem import BuildOut, OwnOption, RentOption
from tenfold.decide.capacity.buildout.program import Key, Program, ProgramBuilder

Terms = list[tuple[int, float]]


def formulate(problem: BuildOut) -> Program:
    """Return the program of a problem."""
    made = _Formulation(problem)
    made.purchases()
    for scenario in range(len(problem.scenarios)):
        for month in range(problem.months):
            made.month(scenario, month)
    made.limits()
    made.worst_scenarios()
    return made.build.program()


def bought_months(option: OwnOption, problem: BuildOut) -> range:
    """Return the months in which nodes can be ordered that arrive before the end."""
    return range(0, max(0, problem.months - option.lead_months), problem.order_every)


def arrived(option: OwnOption, month: int) -> range:
    """Return the months of orders that have arrived by a month."""
    return range(max(0, month - option.lead_months + 1))


def reserved_in(option: RentOption, month: int) -> range:
    """Return the months of reservations that cover a month."""
    return range(max(0, month - option.reserved_months + 1), month + 1)


class _Formulation:
    """The program of one problem, part by part."""

    def __init__(self, problem: BuildOut) -> None:
        self.problem = problem
        self.build = ProgramBuilder()
        self._risk = problem.cvar_weight > 0 and len(problem.scenarios) > 1
        self._expected = 1 - problem.cvar_weight if self._risk else 1.0
        self._spent: list[Terms] = [[] for _ in problem.scenarios]
        """What a scenario costs over all months."""

    def purchases(self) -> None:
        problem, build = self.problem, self.build
        for at, option in enumerate(problem.own):
            most = inf if option.nodes_most is None else float(option.nodes_most)
            columns: Terms = []
            for month in bought_months(option, problem):
                usd = option.usd_per_node_month * (problem.months - month - option.lead_months)
                columns.append((self._shared(("buy", at, month), usd, most), 1.0))
            if columns and option.nodes_most is not None:
                build.row(("nodes-most", at), columns, high=most)
        for at, option in enumerate(problem.rent):
            if option.usd_reserved is None:
                continue
            for month in range(0, problem.months, problem.order_every):
                paid = min(option.reserved_months, problem.months - month)
                usd = option.usd_reserved * option.gpus_per_unit * paid
                self._shared(("reserve", at, month), usd, inf)

    def month(self, scenario: int, month: int) -> None:
        """Add the use of capacity in one month of one scenario."""
        self._rented(scenario, month)
        self._served(scenario, month)
        self._owned(scenario, month)
        self._budget(scenario, month)

    def limits(self) -> None:
        """Add the limits on what new nodes use together."""
        for place, limit in enumerate(self.problem.limits):
            for month in range(self.problem.months):
                terms: Terms = []
                for at, option in enumerate(self.problem.own):
                    terms += [
                        (column, limit.per_node.get(option.name, 0.0))
                        for column in self._nodes(at, month)
                    ]
                    if option.name in limit.per_unit:
                        terms.append((self._units(place, at, month), 1.0))
                self.build.row(("limit", place, month), terms, high=max(0.0, limit.room[month]))

    def worst_scenarios(self) -> None:
        """Add the mean cost of the worst scenarios to what is minimised."""
        problem = self.problem
        if not self._risk:
            return
        # The threshold may be any number; costs are not negative, so neither is the best one.
        level = self.build.column(("worst",), problem.cvar_weight)
        for at, scenario in enumerate(problem.scenarios):
            cost = problem.cvar_weight * scenario.probability / problem.cvar_tail
            above = self.build.column(("above", at), cost)
            terms = [*self._spent[at], (level, -1.0), (above, -1.0)]
            self.build.row(("worst", at), terms, high=0.0)

    def _shared(self, key: Key, usd: float, upper: float) -> int:
        """Add a decision that every scenario pays for."""
        column = self.build.column(key, self._expected * usd, upper=upper, whole=True)
        for spent in self._spent:
            spent.append((column, usd))
        return column

    def _own(self, scenario: int, key: Key, usd: float) -> int:
        """Add a decision of one scenario."""
        weight = self._expected * self.problem.scenarios[scenario].probability
        column = self.build.column(key, weight * usd)
        if usd:
            self._spent[scenario].append((column, usd))
        return column

    def _rented(self, scenario: int, month: int) -> None:
        """Add rented GPUs by class, and the rows that reservations and offers limit them with."""
        for at, option in enumerate(self.problem.rent):
            reserved: Terms = []
            hourly: Terms = []
            for number, kind in enumerate(self.problem.classes):
                if option.name not in kind.rates:
                    continue
                key = (number, at, month, scenario)
                if option.usd_on_demand is not None:
                    usd = option.usd_on_demand
                    hourly.append((self._own(scenario, ("on-demand", *key), usd), 1.0))
                if option.usd_spot is not None and kind.spot_share > 0:
                    usd = option.usd_spot
                    hourly.append((self._own(scenario, ("spot", *key), usd), 1.0))
                if option.usd_reserved is not None:
                    reserved.append((self._own(scenario, ("reserved-use", *key), 0.0), 1.0))
            bought = [
                (column, -float(option.gpus_per_unit)) for column in self._reserved(at, month)
            ]
            if reserved:
                self.build.row(("reserved", at, month, scenario), [*reserved, *bought], high=0.0)
            if option.gpus_most is not None and (hourly or bought):
                terms = [*hourly, *((column, -factor) for column, factor in bought)]
                most = float(option.gpus_most)
                self.build.row(("gpus-most", at, month, scenario), terms, high=most)

    def _served(self, scenario: int, month: int) -> None:
        """Add the demand of each class, met or missing, and its share on spot capacity."""
        for number, kind in enumerate(self.problem.classes):
            wanted = self.problem.scenarios[scenario].demand[number][month]
            served: Terms = []
            spot: Terms = []
            for at, option in enumerate(self.problem.own):
                if option.name in kind.rates:
                    column = self._own(scenario, ("own", number, at, month, scenario), 0.0)
                    served.append((column, kind.rates[option.name]))
            for at, option in enumerate(self.problem.rent):
                rate = kind.rates.get(option.name, 0.0)
                key = (number, at, month, scenario)
                for mode in ("on-demand", "reserved-use"):
                    if (mode, *key) in self.build.columns:
                        served.append((self.build.columns[mode, *key], rate))
                if ("spot", *key) in self.build.columns:
                    spot.append((self.build.columns["spot", *key], rate * option.spot_goodput))
            missing = self._own(scenario, ("unmet", number, month, scenario), kind.delay_usd)
            key = (number, month, scenario)
            terms = [*served, *spot, (missing, 1.0)]
            self.build.row(("demand", *key), terms, low=wanted, high=wanted)
            if spot:
                self.build.row(("spot-share", *key), spot, high=kind.spot_share * wanted)

    def _owned(self, scenario: int, month: int) -> None:
        """Add the rows that own capacity, without the spares it needs, limits use with."""
        for at, option in enumerate(self.problem.own):
            used = [
                (self.build.columns[key], 1.0)
                for number in range(len(self.problem.classes))
                if (key := ("own", number, at, month, scenario)) in self.build.columns
            ]
            if not used:
                continue
            each = float(option.gpus_per_node)
            nodes = list(self._nodes(at, month))
            new = [(column, -each) for column in nodes]
            high = each * option.nodes_without(month)
            self.build.row(("own", at, month, scenario), [*used, *new], high=high)
            if option.spares_fixed or option.spares_per_node:
                up = each * (1 - option.spares_per_node)
                ready = option.spares_ready[month] if option.spares_ready else 0.0
                left = up * option.nodes_without(month) + each * (ready - option.spares_fixed)
                new = [(column, -up) for column in nodes]
                key = ("own-less-spares", at, month, scenario)
                self.build.row(key, [*used, *new], high=left)

    def _budget(self, scenario: int, month: int) -> None:
        budget = self.problem.scenarios[scenario].budget_usd
        if not budget:
            return
        terms: Terms = []
        for at, option in enumerate(self.problem.own):
            terms += [(column, option.usd_per_node_month) for column in self._nodes(at, month)]
        for at, option in enumerate(self.problem.rent):
            usd = (option.usd_reserved or 0.0) * option.gpus_per_unit
            terms += [(column, usd) for column in self._reserved(at, month)]
            for number in range(len(self.problem.classes)):
                key = (number, at, month, scenario)
                for mode, price in (("on-demand", option.usd_on_demand), ("spot", option.usd_spot)):
                    if (mode, *key) in self.build.columns:
                        terms.append((self.build.columns[mode, *key], price or 0.0))
        left = budget[month] - self.problem.fixed(month)
        self.build.row(("budget", month, scenario), terms, high=max(0.0, left))

    def _units(self, place: int, at: int, month: int) -> int:
        """Add the whole units that new nodes of an option take, such as racks."""
        limit, option = self.problem.limits[place], self.problem.own[at]
        column = self.build.column(("units", place, at, month), whole=True)
        nodes = [(one, 1.0) for one in self._nodes(at, month)]
        terms = [*nodes, (column, -limit.per_unit[option.name])]
        free = limit.free.get(option.name, 0.0)
        self.build.row(("units", place, at, month), terms, high=free)
        return column

    def _nodes(self, at: int, month: int) -> Iterator[int]:
        option = self.problem.own[at]
        orders = bought_months(option, self.problem)
        for ordered in arrived(option, month):
            if ordered in orders:
                yield self.build.columns["buy", at, ordered]

    def _reserved(self, at: int, month: int) -> list[int]:
        option = self.problem.rent[at]
        if option.usd_reserved is None:
            return []
        return [
            self.build.columns["reserve", at, start]
            for start in reserved_in(option, month)
            if start % self.problem.order_every == 0
        ]
