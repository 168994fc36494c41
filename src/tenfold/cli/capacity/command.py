"""`tenfold capacity`: how demand grows, and what to order by when."""

from cyclopts import App, Parameter

from tenfold.cli.capacity.forecast import forecast_command
from tenfold.cli.capacity.history import history_command
from tenfold.cli.capacity.plan import plan_command
from tenfold.cli.capacity.triggers import review_command, triggers_command

app = App(
    name="capacity",
    help="Forecast demand, and plan what to order, reserve and rent, and by when.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

app.command(history_command, name="history")
app.command(forecast_command, name="forecast")
app.command(plan_command, name="plan")
app.command(triggers_command, name="triggers")
app.command(review_command, name="review")
