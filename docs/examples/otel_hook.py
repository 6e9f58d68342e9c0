"""OpenTelemetry: the completion hook of the GenAI instrumentations, named in the environment.

    export OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=ctxctl CTXCTL_TRACE=run.jsonl
    python docs/examples/otel_hook.py && ctxctl replay run.jsonl

Needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server that speaks the same.
"""

from openai import OpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

# `opentelemetry-instrument python app.py` does the same without a line.
OpenAIInstrumentor().instrument(tracer_provider=TracerProvider())

question = {"role": "user", "content": "Why is the sky blue?"}
answer = OpenAI().chat.completions.create(model="gpt-5", messages=[question])
print(answer.choices[0].message.content)
