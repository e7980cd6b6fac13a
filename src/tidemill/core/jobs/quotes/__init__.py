"""What a customer orders, read and bounded; what it will cost, and why; and the tasks that it is divided into. Pure."""

from tidemill.core.jobs.quotes.order import Order, parse_order
from tidemill.core.jobs.quotes.quote import Quote, QuoteLine, quote
from tidemill.core.jobs.quotes.tasks import TaskPlan, tasks_of

__all__ = ["Order", "Quote", "QuoteLine", "TaskPlan", "parse_order", "quote", "tasks_of"]
