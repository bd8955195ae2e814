"""What an error of the connection says."""

from aiormq.exceptions import AMQPConnectionError, InvalidFrameError, ProtocolSyntaxError

from trotline.adapters.amqp.broker_url import address_of
from trotline.adapters.amqp.errors import explained
from trotline.errors import FrontierUnreachable

PLACE = address_of("amqp://guest:guest@rabbit.example/")


def test_a_frame_that_cannot_be_decoded_is_not_called_an_outage() -> None:
    for error in (InvalidFrameError("year is out of range"), ProtocolSyntaxError("Unexpected AMQP protocol header")):
        found = explained(error, PLACE, "reading the inbox")
        assert isinstance(found, FrontierUnreachable), "it may be repeated"
        assert "sent what is not AMQP 0-9-1 (reading the inbox)" in found.what
        assert "Is RabbitMQ running" not in str(found.hint)


def test_a_server_that_is_not_there_is_an_outage() -> None:
    assert "cannot reach" in explained(AMQPConnectionError("refused"), PLACE, "reading the inbox").what
