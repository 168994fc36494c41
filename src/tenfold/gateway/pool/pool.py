"""All services of a gateway, by name and by model."""

from collections.abc import Iterable
from random import Random

from tenfold.gateway.admit.identity import Caller, Identities
from tenfold.gateway.admit.limits import TeamUse
from tenfold.gateway.admit.refusals import RequestRefused
from tenfold.gateway.pool.service import ServiceState
from tenfold.model.service.routing import RoutingState, TeamLimits, models_of


class ServicePool:
    """The services, teams and tokens of the newest routing state."""

    def __init__(self, seed: int) -> None:
        self.state: RoutingState | None = None
        self.services: dict[str, ServiceState] = {}
        self.identities = Identities()
        self._random = Random(seed)
        self._by_model: dict[str, list[ServiceState]] = {}
        self._limits: dict[str, TeamLimits] = {}
        self._teams: dict[str, TeamUse] = {}

    @property
    def version(self) -> int:
        """The version of the routing state; -1 before the first."""
        return -1 if self.state is None else self.state.version

    def apply(self, state: RoutingState, now_s: float) -> None:
        """Route by a new state. Replicas that are still in it keep their requests."""
        self.state = state
        self.identities = Identities(state)
        self._limits = {one.name: one for one in state.teams}
        for name, use in self._teams.items():
            use.update(self._limits_of(name))
        known, gone = self.services, dict(self.services)
        self.services, self._by_model = {}, {}
        for spec in state.services:
            service = known.get(spec.name) or ServiceState(spec, self._shares, self._random)
            service.update(spec)
            self.services[spec.name] = service
            gone.pop(spec.name, None)
            for model in models_of(spec):
                self._by_model.setdefault(model, []).append(service)
        for service in gone.values():
            for ticket in list(service.queue):
                message = f"`{service.spec.name}` was removed"
                service.drop(ticket, RequestRefused("model_not_found", message))
        for service in self.services.values():
            service.dispatch(now_s)

    def team(self, name: str) -> TeamUse:
        """Return what a team uses."""
        use = self._teams.get(name)
        if use is None:
            use = self._teams[name] = TeamUse(self._limits_of(name))
        return use

    def service_named(self, name: str, caller: Caller) -> ServiceState:
        """Return a service by name; raise if the caller may not use it, or if there is none."""
        service = self.services.get(name)
        if service is None or not caller.may_use(service.spec):
            raise _not_found(name)
        return service

    def service_of(self, model: str, caller: Caller) -> ServiceState:
        """Return the service of a model; raise if the caller may not use it, or there is none."""
        for service in self._by_model.get(model, ()):
            if caller.may_use(service.spec):
                return service
        raise _not_found(model)

    def models(self, caller: Caller) -> list[str]:
        """Return the models that a caller may use."""
        return list(dict.fromkeys(model for model, _ in self._usable(caller)))

    def sweep(self, now_s: float) -> None:
        """Do what is due in every service."""
        for service in self.services.values():
            service.sweep(now_s)

    def _usable(self, caller: Caller) -> Iterable[tuple[str, ServiceState]]:
        for model, services in self._by_model.items():
            for service in services:
                if caller.may_use(service.spec):
                    yield model, service

    def _limits_of(self, team: str) -> TeamLimits:
        return self._limits.get(team) or TeamLimits(name=team)

    def _shares(self, team: str) -> tuple[float, int]:
        limits = self._limits_of(team)
        return limits.weight, limits.priority


def _not_found(name: str) -> RequestRefused:
    shown = name if len(name) <= 100 else f"{name[:97]}..."
    return RequestRefused(
        "model_not_found", f"the model `{shown}` does not exist, or you have no access to it"
    )
