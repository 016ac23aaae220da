"""Decodes requests caught on their way to a Collector, with Google's protobuf.

Place: an independent judge of the daemon's OTLP; it shares no code with the
daemon nor with the Collector.

    decode.py FOLDER

In FOLDER lie bodies as they came over the wire, NUMBER.PROTOCOL.ENCODING.SIGNAL:
protocol http or grpc, encoding identity or gzip, signal metrics, traces or logs.
Prints one JSON array a data point, span and log record.
"""

import gzip
import json
import sys
from decimal import Decimal
from pathlib import Path

from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

REQUESTS = {
    "metrics": metrics_service_pb2.ExportMetricsServiceRequest,
    "traces": trace_service_pb2.ExportTraceServiceRequest,
    "logs": logs_service_pb2.ExportLogsServiceRequest,
}


def messages(body, protocol, encoding):
    """The messages of a body: one over HTTP, framed ones over gRPC."""
    if protocol == "http":
        yield gzip.decompress(body) if encoding == "gzip" else body
        return
    while body:
        compressed, size = body[0], int.from_bytes(body[1:5], "big")
        message, body = body[5 : 5 + size], body[5 + size :]
        if len(message) != size:
            sys.exit(f"a frame of {size} bytes holds {len(message)}")
        if compressed != (encoding == "gzip"):
            sys.exit(f"grpc-encoding {encoding}, but the flag of the frame is {compressed}")
        yield gzip.decompress(message) if compressed else message


def all_known(message, place):
    """Stops where a message has a field that OTLP does not know."""
    if len(UnknownFieldSet(message)):
        sys.exit(f"{place} has unknown fields in {message.DESCRIPTOR.full_name}")
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if field.is_repeated else [value]:
                all_known(inner, place)


def plain(value):
    """Any value as text, as the test writes it."""
    kind = value.WhichOneof("value")
    if kind is None:
        return ""
    if kind == "array_value":
        return ",".join(map(plain, value.array_value.values))
    inner = getattr(value, kind)
    if kind == "bool_value":
        return "true" if inner else "false"
    if kind == "double_value":
        # 3.0 as 3, and never with an exponent.
        return format(Decimal(repr(inner)), "f").removesuffix(".0")
    return str(inner)


def attributes(pairs):
    keys = [pair.key for pair in pairs]
    if len(set(keys)) != len(keys):
        sys.exit(f"an attribute stands twice: {keys}")
    return {pair.key: plain(pair.value) for pair in pairs}


def points(request):
    for part in request.resource_metrics:
        resource = attributes(part.resource.attributes)
        for scope in part.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                for point in data.data_points:
                    if kind == "histogram":
                        values = [*point.explicit_bounds, *point.bucket_counts, point.count, point.sum]
                    else:
                        values = [getattr(point, point.WhichOneof("value") or "as_double")]
                    yield [
                        "point",
                        resource.get("service.instance.id", ""),
                        metric.name,
                        metric.unit,
                        kind,
                        attributes(point.attributes),
                        point.start_time_unix_nano,
                        point.time_unix_nano,
                        bool(point.flags & 1),
                        [float(value) for value in values],
                    ]


def spans(request):
    for part in request.resource_spans:
        resource = attributes(part.resource.attributes)
        for scope in part.scope_spans:
            for span in scope.spans:
                yield [
                    "span",
                    resource.get("service.instance.id", ""),
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name,
                    span.kind,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    attributes(span.attributes),
                    [[event.name, event.time_unix_nano, attributes(event.attributes)] for event in span.events],
                    [[link.trace_id.hex(), link.span_id.hex()] for link in span.links],
                    span.status.code,
                    span.status.message,
                ]


def records(request):
    for part in request.resource_logs:
        resource = attributes(part.resource.attributes)
        for scope in part.scope_logs:
            for record in scope.log_records:
                yield [
                    "record",
                    resource.get("service.instance.id", ""),
                    record.time_unix_nano,
                    record.severity_number,
                    record.severity_text,
                    record.event_name,
                    plain(record.body),
                    attributes(record.attributes),
                    record.trace_id.hex(),
                    record.span_id.hex(),
                ]


def main():
    kinds = {"metrics": points, "traces": spans, "logs": records}
    for file in sorted(Path(sys.argv[1]).iterdir()):
        _, protocol, encoding, signal = file.name.split(".")
        for message in messages(file.read_bytes(), protocol, encoding):
            request = REQUESTS[signal].FromString(message)
            all_known(request, file.name)
            for row in kinds[signal](request):
                print(json.dumps(row, sort_keys=True))


if __name__ == "__main__":
    main()
