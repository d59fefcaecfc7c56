"""The sensor `outbox`: what exposures and the webhook are to be told is delivered between daily runs."""

import dagster as dg

from platform_assets.errors import PlatformError
from platform_assets.operations.outbox.delivery import deliver
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.words import counted

_SENDING_S = 30.0
"""A tick has a minute; what slow receivers leave waits for the next one."""


_NAMED = 10
"""Messages that a tick names; `outbox list --all` has them all."""


class DeliveryError(PlatformError):
    """Somebody did not take a message; it is tried again, or was given up."""


@dg.sensor(
    name="outbox",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Delivers what the outbox holds for exposures and the webhook, and tries again what was not taken.",
)
def deliver_messages(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.SkipReason:
    """Every message that is due.

    Raises:
        DeliveryError: a message was not taken; the tick is red, and the next one goes on.
    """
    with platform.open() as opened:
        done = deliver(opened, _SENDING_S)
    tried = len(done.delivered) + len(done.failed)
    if done.failed:
        last = done.failed[-1]
        raise DeliveryError(
            f"{len(done.failed)} of {tried} messages were not delivered. {last.target} {last.problem}.",
            "They are tried again by themselves; `platform-assets outbox list` says when, and what was given up.",
        )
    waits = [f"nothing is sent to {target}: {reason}" for target, reason in done.no_address.items()]
    told = [f"delivered: {message.title}" for message in done.delivered[:_NAMED]]
    if (more := len(done.delivered) - _NAMED) > 0:
        told.append(f"and {counted(more, 'more message')}")
    return dg.SkipReason("; ".join((*told, *waits)) or "nothing is due")
