#!/usr/bin/env python3
"""Writes tests/data/template/families.json: templates that use what those of the model families use, each over a list of
conversations, rendered by jinja2 set up as transformers does.

    pip install jinja2
    tools/make_family_template_goldens.py
"""

from make_template_goldens import CONVERSATIONS, TOOLS, call, render, write

TEMPLATES = {
    # namespaces, reversed walks, macros called within expressions, nested loops over ranges
    "sections": """
{%- set ns = namespace(last_user=-1, count=0, names=[]) %}
{%- macro text_of(content) -%}
  {%- if content is string -%}{{ content }}
  {%- elif content is iterable and content is not mapping -%}
    {%- for part in content -%}
      {%- if part is mapping and part.type == 'text' -%}{{ part.text }}
      {%- elif part is string -%}{{ part }}
      {%- else -%}[{{ part.type | default('?') }}]{%- endif -%}
    {%- endfor -%}
  {%- elif content is none or content is not defined -%}
  {%- else -%}{{ content }}
  {%- endif -%}
{%- endmacro -%}
{%- macro header(role, n=none) %}[{{ role | upper }}{{ '#' ~ n if n is not none else '' }}]{% endmacro -%}
[gMASK]<sop>
{%- for m in messages[::-1] %}
  {%- if m.role == 'user' and ns.last_user < 0 %}
    {%- set ns.last_user = messages | length - 1 - loop.index0 %}
  {%- endif %}
{%- endfor %}
{%- for m in messages %}
  {%- set content = text_of(m.content) %}
  {%- set ns.count = ns.count + 1 %}
  {%- if m.role not in ns.names %}{% set ns.names = ns.names + [m.role] %}{% endif %}
  {{- '\\n' if not loop.first }}{{ header(m.role, loop.index) + ' ' + content.strip() }}
  {%- if m.role == 'assistant' %}
    {%- set reasoning = m.reasoning_content if m.reasoning_content is defined and m.reasoning_content is string else '' %}
    {%- if not reasoning and '</think>' in content %}
      {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
      {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {%- if loop.index0 > ns.last_user and reasoning %}<think>{{ reasoning.strip() }}</think>{{ content }}{% else %}</think>{{ content }}{% endif %}
    {%- for tc in m.tool_calls or [] %}
      {%- set f = tc.function if tc.function else tc %}
<call>{{ f.name }}
      {%- if f.arguments is mapping %}
        {%- for k, v in f.arguments.items() %}
<arg>{{ k }}={{ v if v is string else v | tojson(ensure_ascii=False) }}</arg>
        {%- endfor %}
      {%- else %}
<raw>{{ f.arguments }}</raw>
      {%- endif %}
</call>
    {%- endfor %}
  {%- endif %}
{%- endfor %}
{%- for i in range(0, ns.count, 2) %}{% for j in range(i, i + 2) if j < ns.count %}{{ ' ' ~ i ~ j if loop.last else '' }}{% endfor %}{% endfor %}
{{ ns.names | join(',') }}|{{ ns.last_user }}
{%- if add_generation_prompt %}<go>{{ '</think>' if enable_thinking is defined and enable_thinking is false else '<think>' }}{% endif %}
""",
    # the tools of a conversation, line by line
    "tools": """{% if tools %}
{{- '# Tools\\n' }}
{%- for tool in tools %}
{%- set f = tool['function'] if 'function' in tool else tool %}
## {{ f.name }}{{ ': ' + f.description if f.description is defined and f.description else '' }}
{{ tool | tojson(ensure_ascii=False) }}
{{ tool | tojson(indent=2) }}
{% for name, schema in f.parameters.properties.items() %}
- {{ name }} ({{ schema.type }}{% if name in f.parameters.get('required', []) %}, required{% endif %}){% if schema.default is defined %} = {{ schema.default }}{% endif %}

{% endfor %}
{% endfor %}
{% else %}
no tools
{% endif %}
{% set calls = messages | selectattr('tool_calls', 'defined') | list %}
{{ calls | length }} with calls, {{ messages | map(attribute='role') | unique | sort | join('/') }}
{% for m in messages if m.role == 'tool' %}
{%- if loop.first or loop.previtem.role != 'tool' %}<results>
{% endif %}
{{ loop.index }}/{{ loop.length }} {{ m.content | trim }}
{%- if loop.last %}

</results>
{% endif %}
{% endfor %}
""",
    # what is refused, what is said only when asked for
    "strict": """{%- if messages | length == 0 %}{{ raise_exception('no messages') }}{% endif -%}
{%- if messages[0].role == 'system' -%}
  {%- set system, rest = messages[0].content, messages[1:] -%}
{%- else -%}
  {%- set system = 'You are helpful.' -%}{%- set rest = messages -%}
{%- endif -%}
{{- '<s>' ~ (system | string | trim) ~ '</s>' -}}
{% for m in rest %}
{% generation %}
{%- if (m['role'] == 'user') == (loop.index0 % 2 == 0) or m.role == 'tool' or m.role == 'system' -%}
<{{ m.role }}>{{ m.content if m.content is string else (m.content | default('', true)) | map(attribute='text') | join('\\n') }}</{{ m.role }}>
{%- else -%}
{{ raise_exception('roles must alternate, got ' ~ m.role ~ ' at ' ~ loop.index) }}
{%- endif -%}
{% endgeneration %}
{% endfor %}
{{ eos_token | default('</s>') }}{{ strftime_now('%Y') | length }}""",
    # loop controls, cycles, recursion, blocks of text
    "loops": """{% set out %}
{% for m in messages %}{% if m.content is not string %}{% continue %}{% endif %}{% if loop.index > 4 %}{% break %}{% endif %}
{{ loop.cycle('a', 'b') }}{{ loop.revindex }} {{ m.content[:5] }}|{{ m.content[-3:] }}|{{ m.content[1:-1:2] }}|{{ m.content[::-1] }}
{% else %}
nothing
{% endfor %}
{% endset %}
{{ out | indent(2, first=true) }}
{%- macro walk(x, depth=0) -%}
{%- if x is mapping -%}{ {%- for k in x | sort -%}{{ k }}:{{ walk(x[k], depth + 1) }}{{ ', ' if not loop.last }}{%- endfor -%} }
{%- elif x is string -%}{{ x | replace('\\n', ' ') | truncate(20, true, '...') }}
{%- elif x is sequence -%}[{%- for y in x -%}{{ walk(y, depth + 1) }}{{ ', ' if not loop.last }}{%- endfor -%}]
{%- else -%}{{ x }}@{{ depth }}{%- endif -%}
{%- endmacro %}
{{ walk(messages) }}
{% filter trim %}  {{ messages | map(attribute='content') | select('string') | map('length') | sum }}  {% endfilter %}
""",
    # dicts, lists and numbers put together
    "values": """{%- set roles = {'user': 'U', 'assistant': 'A', 'system': 'S'} -%}
{%- set ns = namespace(total=0, parts=[], map={}) -%}
{%- for m in messages -%}
  {%- set size = m.content | length if m.content is string else (m.content | length * 10 if m.content is iterable else 0) -%}
  {%- set ns.total = ns.total + size -%}
  {%- set ns.parts = ns.parts + [{'r': roles.get(m.role, m.role[0] | upper), 'n': size, 'half': size / 2, 'odd': size % 2 == 1}] -%}
  {%- set ns.map = dict((ns.map.items() | list) + [(m.role, size)]) -%}
{%- endfor -%}
{{ ns.parts }} {{ ns.parts | tojson }} {{ ns.map }} {{ ns.total }} {{ ns.total // 3 }} {{ (ns.total / 3) | round(2) }} {{ ns.total ** 2 }}
{{ ns.parts | batch(2) | map('length') | list }} {{ ns.parts | map(attribute='n') | map('string') | join('+') }}
{{ '%s has %d' % ('it', ns.total) }} {{ '%05.1f|%-4s|%x' % (ns.total / 2, 'ab', ns.total) }} {{ 'x=%s' | format(ns.total) }}
{{ [1, 2, 3][-1] }} {{ [1, 2, 3][:2] }} {{ (1, 2) + (3,) }} {{ 'abc' in ['abc'] }} {{ 3 not in [1, 2] }} {{ none is none }} {{ [] is iterable }} {{ {} is mapping }}
{{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | list }} {{ messages | selectattr('role', 'in', ['user', 'tool']) | list | length }}
{{ messages[0].role if messages else 'none' }} {{ (messages | last).role if messages else '' }} {{ 1.5e3 }} {{ 10 ** 20 if false else 7 }} {{ 5 | float }} {{ '3' | int + 1 }}
""",
}

PARTS = [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "ünï 😀\n"}]
MORE = {
    "parts": {"messages": [{"role": "system", "content": [{"type": "text", "text": "S"}]}, {"role": "user", "content": PARTS},
                           {"role": "assistant", "content": "<think>a\nb</think>\n\nyes", "tool_calls": None}]},
    "parts of nothing": {"messages": [{"role": "user", "content": []}, {"role": "assistant", "content": [{"type": "text", "text": ""}]}]},
    "numbers": {"messages": [{"role": "user", "content": "0123456789", "n": 12345678901, "x": 1e-7, "y": -0.5, "z": 1e22, "w": 3.0}],
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
                    "a": {"type": "number", "default": 0.1}, "b": {"type": "array", "items": {}, "default": [1, [2.0, None]]}}}}}]},
    "many calls": {"messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "reasoning_content": "step", "tool_calls": [
            call("a", {}), call("b", {"q": "it's \"x\"", "n": [1, 2.5, True, None], "o": {"k": "v"}}), {"name": "c", "arguments": "{\"raw\": 1}"}]},
        {"role": "tool", "content": "1"}, {"role": "tool", "content": " 2\n"}, {"role": "user", "content": "more"},
        {"role": "assistant", "content": "done", "reasoning_content": " because "}], "tools": TOOLS},
    "no thinking": {"messages": [{"role": "user", "content": "q"}], "kwargs": {"enable_thinking": False, "eos_token": "<end>"}},
}


def main():
    conversations = {**CONVERSATIONS, **MORE}
    templates = []
    for name, source in TEMPLATES.items():
        cases = []
        for conversation, content in conversations.items():
            for go in (False, True):
                names = {"messages": content["messages"], "tools": content.get("tools"), "documents": None, "add_generation_prompt": go,
                         **content.get("kwargs", {})}
                cases.append({"conversation": conversation, "add_generation_prompt": go, **render(source, names)})
        templates.append({"name": name, "source": source, "cases": cases})
    write("families.json", {"conversations": conversations, "templates": templates})


if __name__ == "__main__":
    main()
