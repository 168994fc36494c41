"""What every provider owes, whatever is behind it."""

from typing import ClassVar

import pytest

from tenfold.live.providers.provider import NoCapacity, Provider


class ProviderContract:
    """Tests of one provider; a subclass gives it, and a zone with room for two nodes."""

    zone: ClassVar[str] = "zone-1"
    empty_zone: ClassVar[str] = "zone-empty"
    """A zone without capacity."""

    @pytest.fixture
    def provider(self) -> Provider:
        raise NotImplementedError

    def test_nothing_is_rented_at_first(self, provider: Provider):
        assert provider.instances() == ()

    def test_what_is_rented_is_listed_with_its_zone(self, provider: Provider):
        ids = provider.rent(self.zone, 2)
        assert len(set(ids)) == 2
        listed = provider.instances()
        assert [one.id for one in listed] == sorted(ids)
        assert {one.zone for one in listed} == {self.zone}
        assert {one.state for one in listed} <= {"starting", "running"}

    def test_what_is_given_back_is_no_longer_paid_for(self, provider: Provider):
        first, second = provider.rent(self.zone, 2)
        provider.release([first])
        left = {one.id for one in provider.instances() if one.state != "stopping"}
        assert left == {second}

    def test_giving_back_twice_is_no_error(self, provider: Provider):
        (only,) = provider.rent(self.zone, 1)
        provider.release([only])
        provider.release([only])
        assert all(one.state == "stopping" for one in provider.instances())

    def test_a_zone_without_capacity_rents_nothing(self, provider: Provider):
        with pytest.raises(NoCapacity):
            provider.rent(self.empty_zone, 1)
        assert provider.instances() == ()

    def test_renting_is_all_or_nothing(self, provider: Provider):
        with pytest.raises(NoCapacity):
            provider.rent(self.zone, 9)
        assert all(one.state == "stopping" for one in provider.instances())
