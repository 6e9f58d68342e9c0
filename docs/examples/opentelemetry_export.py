"""A program that is instrumented with OpenTelemetry, and sends its spans to `ctxctl record --otlp`.

    ctxctl record --otlp -o run.jsonl
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python opentelemetry_export.py

Needs openai, opentelemetry-sdk, opentelemetry-exporter-otlp-proto-http and
opentelemetry-instrumentation-genai-openai.
"""

import os

# Without these the texts are not exported, and only numbers are left.
os.environ.setdefault("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
os.environ.setdefault("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "span_only")

from openai import OpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()

client = OpenAI()
messages = [{"role": "system", "content": "You answer in one sentence."}]
for question in ("Why is the sky blue?", "And at dusk?"):
    messages.append({"role": "user", "content": question})
    answer = client.chat.completions.create(model="gpt-5", messages=messages)
    messages.append({"role": "assistant", "content": answer.choices[0].message.content})
    print(messages[-1]["content"])

provider.shutdown()
