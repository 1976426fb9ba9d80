#!/usr/bin/env python3
"""Writes tests/data/template/families.json: templates that use what those of the model families use, each over a list of
conversations, rendered by jinja2 set up as transformers does.

    pip install jinja2
    tools/make_family_template_goldens.py
"""

from make_template_goldens import CONVERSATIONS, NAMES, TOOLS, call, render, write

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

# One construct each, over the names of the other golden files.
SNIPPETS = [
    "{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{{ ns.a }}",
    "{% macro a(x) %}[{{ x }}]{% endmacro %}{% macro b(y) %}{{ a(y) ~ a(y|upper) }}{% endmacro %}{{ b('q') + '!' }}{{ a(a('z'))|length }}",
    "{{ s|truncate(8) }}|{{ s|truncate(5, true) }}|{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}|{{ 'foo bar baz qux'|truncate(11) }}|{{ \"foo bar baz qux\"|truncate(11, False, '...', 0) }}",
    "{{ 'x=%s y=%d'|format('a', 3) }} {{ '%s %s' % ('a', 1) }} {{ '%5.2f' % 2.567 }} {{ '%x' % 255 }} {{ '%%' % () }}",
    "{{ l is not iterable }} {{ 1 is not none and 2 is none }} {{ none_value is defined }} {{ x is undefined }} {{ s is not mapping }}",
    "{{ 'a' if missing is defined else 'b' }} {{ ('a' if t else 'b') ~ 'c' }}",
    "{{ l[1:-1] }} {{ l[:-1] }} {{ s[2:5][::-1] }} {{ messages[1:][0].role }} {{ messages[-2:]|map(attribute='role')|list }}",
    "{{ s.lstrip('He') }} {{ s.rstrip('dl') }} {{ '\\n x \\n'.strip('\\n') }}| {{ 'a.b'.split('.')[0] }} {{ s.split('o', 1)[1] }}",
    "{{ d.items()|list|length }} {{ d.keys()|list|first }} {% for k, v in d|dictsort %}{{ k }},{% endfor %}",
    "{% for k, v in d|items %}{{ loop.index }}{{ k }}{% endfor %}",
    "{{ {'a': 1}|tojson }} {{ 'é'|tojson(ensure_ascii=False) }} {{ 'é'|tojson(ensure_ascii=True) }} {{ [1,2]|tojson(indent=4) }} {{ {'b':1,'a':2}|tojson(sort_keys=True) }} {{ [1,[2,3]]|tojson(separators=(',',':')) }}",
    "{{ [1.0, 2.50, 1e100, 1e-10, 123456789012345680.0]|tojson }}",
    "{%- set x -%} a {%- if t %} b {% endif -%} c {%- endset -%}[{{ x }}]",
    "{% for i in range(10, 0, -3) %}{{ i }} {% endfor %}{{ range(3)|sum }} {{ range(4)|last }} {{ range(3)|length }} {{ range(2,6)[1] }} {{ range(5)[1:3]|list }} {{ 3 in range(5) }}",
    "{% for a in [1,2] %}{% for b in [3,4] %}{{ loop.index }}{{ loop.first }}{% endfor %}{{ loop.last }}{% endfor %}",
    "{% set outer = [] %}{% for a in [1,2] %}{% set _ = outer.append(a) %}{% endfor %}{{ outer }}",
    "{% do l.append(1) %}",
    "{{ (l|sort)[0] }} {{ l|sort|first }} {{ l|sort(reverse=True)|first }} {{ -l|first }}",
    "{{ 'a' in 'abc' and 'z' not in 'abc' }} {{ not 'z' in 'abc' }} {{ 1 < 2 and 2 < 3 or false }}",
    "{% if s is string and s|length > 3 and s[0] == 'H' %}ok{% endif %}",
    "{{ s.replace('o', '0').upper().split(' ')[1].lower() }} {{ ('a' ~ 'b').upper() }} {{ 'ab'.upper()[0] }} {{ (1, 2)[0] }} {{ [[1,2],[3]][0][1] }}",
    "{{ caller is defined }} {% macro m() %}{{ caller is defined }}{{ caller() if caller else 'none' }}{% endmacro %}{{ m() }}{% call m() %}in{% endcall %}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% set x = 1 %}{% with %}{% set x = 2 %}{{ x }}{% endwith %}{{ x }}",
    "{% trans %}x{% endtrans %}",
    "{{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ messages|selectattr('role', '==', 'user')|map(attribute='content')|first }} {{ messages|rejectattr('content', 'none')|list|length }}",
    "{{ messages|map(attribute='content')|select('string')|join('|') }} {{ l|map('string')|map('upper')|join }} {{ l|select('in', [1, 2])|list }} {{ l|select('divisibleby', 5)|list }} {{ l|reject('equalto', 3)|list }}",
    "{{ words|map('lower')|sort|join }} {{ words|sort(case_sensitive=false)|join }} {{ people|sort(attribute='name', reverse=true)|map(attribute='name')|join(',') }} {{ people|min(attribute='age') }} {{ people|sum('age', 5) }}",
    "{{ s|wordcount }} {{ s|first }} {{ s|last }} {{ s|list|length }} {{ s|reverse }} {{ s|lower|title }} {{ s|center(15)|length }}",
    "{{ [1,2,3]|join }} {{ [[1,2],[3]]|sum(start=[]) }} {{ ['a', none]|join(',') }} {{ [1.5, true]|join('-') }}",
    "{{ \"{{ x }}\" }} {{ '{% if %}' }} {# {{ nope }} #}ok",
    "{%- for m in messages -%}{%- if loop.first and m.role == 'system' -%}{%- continue -%}{%- endif -%}{{ m.role }}{%- endfor -%}",
    "{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined else '^' }}>{{ m.role }}>{{ loop.nextitem.role if not loop.last else '$' }} {% endfor %}",
    "{{ messages[0]['content'][0:2] ~ messages[0].get('role') ~ messages[0].get('nope', 'dflt') }} {{ messages[0].nope is defined }} {{ 'role' in messages[0] }} {{ messages[0].nope|default('x') }}",
    "{{ dict(a=1).a }} {{ dict([('x', 1)])['x'] }} {{ {'a': {'b': [1, {'c': 2}]}}.a.b[1].c }} {{ {'a': 1}.items()|list }} {{ {'a':1} == {'a':1.0} }} {{ [1,2] == [1,2] }} {{ (1,) == [1] }} {{ 'x' in {'x': 1} }}",
    "{{ [*l] }}",
    "{% if true %}{%- endif %} x {% if true -%} y {%- endif %}",
    "{% set x = 'abc' %}{% for c in x %}{{ c }}{{ loop.index }}{% if not loop.last %}-{% endif %}{% endfor %}",
    "{{ none|default('x', true) }} {{ false|default('x') }} {{ 0|default('z', true) }} {{ missing.foo|default('x') }}",
    "{{ missing.foo.bar|default('x') }}",
    "{{ s|replace('l', '') }} {{ s|replace(' ', '\\n') }} {{ 5|replace('5', 'x') }} {{ l|string|replace('[', '<') }}",
    "{{ [3,1]|sort|list + [9] }} {{ l|list|length + 1 }} {{ (l + [5])|max }} {{ l|first + l|last }}",
    "{{ l.pop() }}",
    "{{ l.copy() }} {{ d.copy().b }} {{ [1,2].index(2) }}",
    "{{ lookup }}{{ d.lookup }}{{ d.b.c }}",
    "{% for x in l %}{% if loop.index is even %}{{ x }}{% elif loop.index is odd and x is gt 2 %}[{{ x }}]{% else %}-{% endif %}{% endfor %}",
    "{% set ns = namespace(found=false) %}{% for x in l %}{% if not ns.found and x == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ 'yes' if ns.found else 'no' }}",
    "{{ x if x is defined }}{{ ('a', 'b')|join }}{{ ('a',)|length }}",
    "{% raw %}{{ x }}{% endraw %}{% filter replace('a', 'b') %}aaa{% endfilter %}",
    "{% set a %}{% for i in range(3) %}{{ i }}{% endfor %}{% endset %}{{ a * 2 }} {{ a is string }} {{ a + 'x' }}",
    "{% macro m(x) %}{{ x.y if x is mapping else x }}{% endmacro %}{{ [m({'y': 1}), m(2)]|join(',') }} {{ m(m(1)) ~ 'z' }} {{ {'k': m(5)}.k }} {% if m(0) == '0' %}eq{% endif %} {{ m(3)|int + 1 }}",
    "{{ 1 if 0 else 2 if 0 else 3 }} {{ (1 if 1) + 1 }} {{ [1 if t else 2, 3] }}",
    "{{ loop is defined }}{% for x in [1] %}{{ loop is defined }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{{ 5 is divisibleby 5 }}{{ 4 is divisibleby(3) }}{{ 'A'|lower is lower }}{{ d.b is number and d.b is integer }}",
    "{% set a, (b, c) = 1, (2, 3) %}{{ a }}{{ b }}{{ c }}{% set d2 = [1,2][0] %}{{ d2 }}",
    "{{ messages | tojson(indent=2) }}",
    "{%- set msgs = messages | reject('undefined') | list -%}{{ msgs | length }}{{ msgs | map(attribute='role') | unique | list }}",
    "{{ '%s' % none }} {{ '%s' % l }} {{ '%r' % 'a' }} {{ '%-5s|' % 'a' }} {{ '%05d' % 42 }} {{ '%+d' % 3 }} {{ '%e' % 12345.678 }} {{ '%g' % 0.0001 }} {{ '%s %s' % (1,) }}",
    "{{ missing }} {{ missing|length }} {{ missing|list }} {{ missing|string }} {{ missing == '' }} {{ missing is none }} {{ missing or 'or' }} {{ not missing }}",
    "{% if missing.x is defined %}a{% else %}b{% endif %}",
    "{% for x in missing.y %}{% endfor %}",
    "{% set messages = messages[1:] if messages[0].role == 'system' else messages %}{{ messages|length }}{% set messages = [] %}{{ messages|length }}",
    "{% for message in messages %}{% set content = message.content if message.content is not none else '' %}{{ loop.index0 ~ content }}{% if message.tool_calls is defined and message.tool_calls is iterable and message.tool_calls|length > 0 %}{% for tc in message.tool_calls %}{{ tc.id }}{{ tc|tojson }}{% endfor %}{% endif %}{% endfor %}",
    "a{#- c -#}  b {#+ d +#} e",
    "  {%+ set x = 1 %}\n {%- set y = 2 +%}\n z",
    "{% set x=1 -%}\n   a\n{%- if x %}\n\nb\n{%- endif %}\n\nc",
    "{{ '' }}\n  {% if t %}\n    {{ n }}\n  {% endif %}\ntail",
    "{{ l|batch(2)|list }} {{ l|batch(3, 'x')|list }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}",
    "{{ s|center(20) }}|{{ s|center(15)|length }}",
    "{{ 3.7|int }} {{ '0x1A'|int(base=16) }} {{ '0b11'|int(base=2) }} {{ 1/3 }}",
    "{% for x in l %}{% continue %}{% else %}none ended{% endfor %}|{% for x in l %}{% break %}{% else %}none ended{% endfor %}|{% for x in l %}{% if loop.last %}{% break %}{% endif %}{% else %}no{% endfor %}",
    "{{ 'a\r\nb\u2028c\rd\n\n'|indent(2) }}|{{ 'a\n\nb'|indent('> ', true, true) }}|{{ ''|indent(2, true) }}|{{ '\n'|indent }}|",
    "{{ '%s %s' % ('a',) }}",
    "{{ '%s' % ('a', 'b') }}",
    "{{ '%d' % 'x' }}",
    "{{ '%q' % 1 }}",
    "{{ '%' % () }}",
    "{{ s|truncate(2) }}",
    "{{ '%s|%5s|%-5s|%.2s' % (none, 'é', 'é', 'éèê') }} {{ '%i%%' % 3.9 }} {{ '%o %X %#x' % (8, 255, 255) }} {{ '%G %E %F' % (1e-10, 2.5, 2.5) }} {{ '%+.1f % d' % (2.25, 5) }}",
]

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
    snippets = [{"source": source, **render(source, NAMES)} for source in SNIPPETS]
    write("families.json", {"conversations": conversations, "templates": templates, "names": NAMES, "snippets": snippets})


if __name__ == "__main__":
    main()
