"""What a customer asks for, understood; what it will cost, and why; and the tasks it is divided into. Pure."""

from tidemill.core.jobs.quotes.order import Order, understand
from tidemill.core.jobs.quotes.quote import Line, Quote, quote
from tidemill.core.jobs.quotes.tasks import NewTaskParts, tasks_of

__all__ = ["Line", "NewTaskParts", "Order", "Quote", "quote", "tasks_of", "understand"]
