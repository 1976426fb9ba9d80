#!/usr/bin/env python3
"""Writes tests/data/template: what jinja2, set up as transformers does, renders.

    pip install jinja2
    tools/make_template_goldens.py DATA_ROOT

DATA_ROOT holds data/tokenizers (the folder that LATTE_TEST_DATA names in tests).
"""

import json
import sys
from datetime import datetime
from pathlib import Path

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

OUT = Path(__file__).resolve().parent.parent / "tests" / "data" / "template"
NOW = datetime(2025, 3, 9, 14, 5, 6)


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


ENV = environment()


def render(source, names):
    try:
        return {"output": ENV.from_string(source).render(**names)}
    except Exception as error:  # noqa: BLE001 - whatever Python raises, latte must refuse too
        return {"error": type(error).__name__}


NAMES = {
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hé \"you\" <b>\n"},
                 {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "n": 3}]}, {"role": "tool", "content": "42"}],
    "d": {"b": 1, "a": [1, 2.5, None, True, "x'y"], "c": {"z": "ü", "items": 7}, "B": 0}, "n": 7, "f": 2.5, "s": "Hello World",
    "u": "日本語 naïve 😀 ß", "l": [3, 1, 2, 10], "e": [], "t": True, "none_value": None, "big": 12345678901234567,
    "floats": [1.0, 0.1, 1e16, 1e-5, 123456789.125, 1e300, -0.0, 100.0, 5e-324, 1e15, 0.0001], "words": ["b", "A", "c", "a"],
    "people": [{"name": "Ann", "age": 30, "j": {"t": "x"}}, {"name": "bob", "age": 25}, {"name": "Cy", "age": 35, "j": {"t": "y"}}],
    "esc": "tab\t nl\n q\" b\\ ctl\x01 del\x7f nb\u00a0 ls\u2028", "spaces": "  \u3000pad\u00a0 ", "bos_token": "<s>",
}

SNIPPETS = [
    # printing
    "{{ n }} {{ f }} {{ t }} {{ none_value }} {{ s }} [{{ missing }}] {{ l }} {{ d }} {{ (1,) }} {{ (1, 'a') }} {{ () }}",
    "{{ floats }}", "{% for x in floats %}{{ x }} {{ x|tojson }};{% endfor %}", "{{ esc }}|{{ [esc] }}", "{{ [u, \"it's\", 'q\"', '\\'\"'] }}",
    "{{ big }} {{ big * 3 }} {{ -n }} {{ +f }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }} {{ 1e3 }} {{ 1.5e-3 }} {{ 2E2 }}",
    # white space
    "a\n  {% if t %}\n b \n  {% endif %}\nc\n", "  {%- if t -%}  x  {%- endif -%}  y", "a {#- c -#} b {# d #}\n e", "{% raw %} {{ x }} {% y %}{% endraw %}\nz",
    "a\n  {%+ if t %}\n b{%+ endif %}\n", "{% if t +%}\nx{% endif %}", "x\r\n{% if t %}\r\ny\r{% endif %}z\r\n", "a\n\n", "\n{% if t %}\n\nq\n{% endif %}\n\n",
    "  {{ n }}  \n  {{- n -}}  \n x", "\t{# c #}\n\tz", "q  {# c #}\nz", "{% set x = 1 %}\n{{ x }}\n", "a {%- raw -%} b {%- endraw -%} c", "{{ n -}}\n\n z {{- n }}",
    "   {% if t %}{% endif %}   {% if t %}\n{% endif %}\n", "{{ '%}' }}{{ '}}' }}{% if '%}' %}k{% endif %}", "{{ {'a': {'b': 1}}['a'] }}", "{{'a'}}\n{#-\nx\n-#}\nb",
    # expressions
    "{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 5 / 2 }}",
    "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ 'a' + 1 }}", "{{ 'a' ~ 1 ~ none_value ~ missing ~ 2.0 }}", "{{ 'ab' * 3 }} {{ [1] * 2 }} {{ 2 * 'x' }}", "{{ [1] + [2] }} {{ (1,) + (2,) }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == none }} {{ n >= 7 }} {{ n <= 6 }} {{ n != 7 }}",
    "{{ 1 < 'a' }}", "{{ missing < 1 }}", "{{ missing + 'x' }}", "{{ missing == missing2 }} {{ missing != 1 }}", "{{ none_value < 1 }}",
    "{{ t and n }} {{ e or 'x' }} {{ not e }} {{ not not n }} {{ e and missing.x }}", "{{ 'a' if t }}|{{ 'a' if not t }}|{{ 'a' if not t else 'b' if e else 'c' }}",
    "{{ 'lo' in s }} {{ 'x' not in s }} {{ 3 in l }} {{ 'a' in d }} {{ 1 in d }} {{ 'a' in missing }} {{ not 'a' in d }}", "{{ 1 in s }}", "{{ 'a' in none_value }}", "{{ 'a' in n }}",
    "{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[::-1] }} {{ s[:-3] }} {{ s[99:] }} {{ u[1:4] }} {{ u[-1] }} {{ u[::2] }} {{ l[::-1] }} {{ l[1:] }} {{ l[-2:] }} {{ l[5] }}|{{ s[50] }}|{{ l[3:0:-2] }}",
    "{{ l['x'] }}|{{ d.nope }}|{{ d['nope'] }}|{{ d.c.z }}|{{ d['c']['z'] }}|{{ d.a[4] }}|{{ d.a.0 }}|{{ d.c['items'] }}", "{{ d.nope.more }}", "{{ missing.x }}", "{{ missing[0] }}", "{{ missing() }}",
    "{{ none_value.x }}|{{ n.x }}|{{ s.x }}", "{{ l[::0] }}", "{{ {'k': 1, 'j': [2]} }} {{ {1: 2, none: 3} }} {{ {} }} {{ {[1]: 2} }}", "{{ {1: 2, none: 3, true: 4} }}", "{{ {'a': 1, 'a': 2} }}",
    "{{ \"a\\nb\\t\\\"\\x41\\u00e9\\101\\q\" }}", "{{ 'a' 'b' }}", "{{ 1, 2 }}", "{{ (1 + 2) * 3 }}", "{{ true }} {{ True }} {{ false }} {{ none }} {{ None }}", "{{ -1|abs }} {{ -f|abs }} {{ (-n)|abs }}",
    # tests
    "{{ missing is defined }} {{ n is defined }} {{ none_value is none }} {{ s is string }} {{ d is mapping }} {{ l is iterable }} {{ s is iterable }} {{ n is iterable }} {{ l is sequence }} {{ d is sequence }} {{ missing is sequence }}",
    "{{ n is number }} {{ t is number }} {{ f is float }} {{ n is integer }} {{ t is integer }} {{ t is boolean }} {{ t is true }} {{ t is false }} {{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }}",
    "{{ n is eq 7 }} {{ n is not none }} {{ n is not string }} {{ 'a' is in 'abc' }} {{ n is gt 3 }} {{ n is sameas 7 }} {{ false is sameas false }} {{ 'a' is lower }} {{ 'A' is upper }} {{ range is callable }} {{ 'upper' is filter }} {{ 'zz' is filter }} {{ 'odd' is test }}",
    "{{ not missing is defined }} {{ n is defined and t }} {{ n is string or t }} {{ s is string if t else 3 }}", "{{ n is nosuchtest }}",
    # filters
    "{{ s|upper|lower }} {{ s|length }} {{ u|length }} {{ l|length }} {{ d|length }} {{ missing|length }} {{ n|length }}", "{{ spaces|trim }}|{{ 'xxaxx'|trim('x') }}", "{{ l|join(', ') }} {{ people|join('-', attribute='name') }} {{ e|join }} {{ d|join }} {{ 'abc'|join('.') }}",
    "{{ people|map(attribute='name')|list }} {{ people|map(attribute='j.t')|list }}", "{{ people|map(attribute='j.t', default='?')|list }}", "{{ people|map(attribute='zip', default='?')|list }}", "{{ words|map('upper')|list }} {{ words|map('replace', 'a', 'o')|list }}",
    "{{ l|select('odd')|list }} {{ l|reject('odd')|list }} {{ l|select('gt', 2)|list }} {{ [0, 1, '', 'x']|select|list }} {{ people|selectattr('age', 'ge', 30)|map(attribute='name')|list }} {{ people|rejectattr('j')|list }} {{ people|selectattr('j', 'defined')|list|length }}",
    "{{ missing|default('x') }} {{ ''|default('y') }} {{ ''|default('y', true) }} {{ none_value|default('z') }} {{ none_value|d('z', boolean=true) }} {{ missing|default }}|", "{{ l|first }} {{ l|last }} {{ e|first }}|{{ s|first }} {{ d|first }}",
    "{{ l|sort }} {{ l|sort(reverse=true) }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ people|sort(attribute='age')|map(attribute='name')|list }}", "{{ [1, 'a']|sort }}", "{{ l|min }} {{ l|max }} {{ l|sum }} {{ people|sum(attribute='age') }} {{ words|max }} {{ e|max }}|{{ people|max(attribute='age') }}",
    "{{ d|dictsort }} {{ d|dictsort(true) }} {{ d|items|list }} {{ d.items()|list }} {{ d.keys()|list }} {{ d.values()|list }}", "{{ {'b': 2, 'a': 3}|dictsort(by='value') }} {{ {'b': 2, 'a': 3}|dictsort(reverse=true) }}", "{{ missing|items|list }}", "{{ l|reverse|list }} {{ s|reverse }}", "{{ ['a', 'A', 'b', 1, 1]|unique|list }} {{ ['a', 'A']|unique(true)|list }}",
    "{{ '42'|int }} {{ '4.9'|int }} {{ 'x'|int }} {{ 'x'|int(-1) }} {{ f|int }} {{ '1f'|int(base=16) }} {{ '3.5'|float }} {{ 'x'|float }} {{ n|float }} {{ n|string }} {{ l|string }}", "{{ 2.567|round(2) }} {{ 2.5|round }} {{ 2.1|round(method='ceil') }} {{ 2.9|round(0, 'floor') }} {{ 7|round }}",
    "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb\n'|indent(2, blank=true) }}|{{ 'x\ny'|indent('> ') }}|{{ 'a\n'|indent }}|", "{{ s|replace('o', '0') }} {{ s|replace('o', '0', 1) }} {{ 'aaa'|replace('a', 'aa') }} {{ 'ab'|replace('', '-') }}",
    "{{ 'hello wORLD foo-bar (baz'|title }} {{ 'hELLO'|capitalize }} {{ 'a b  c'|wordcount }}", "{{ '<a href=\"x\">&\\'</a>'|e }} {{ '<b>'|safe }} {{ '<b>'|escape }}", "{{ 'abc'|list }} {{ d|list }} {{ missing|list }} {{ missing|upper }}|{{ missing|trim }}|{{ none_value|string }}", "{{ d|attr('b') }}|{{ n|nosuchfilter }}",
    # tojson
    "{{ d|tojson }}", "{{ d|tojson(indent=2) }}", "{{ d|tojson(indent=0) }}", "{{ d|tojson(sort_keys=true) }}", "{{ d|tojson(separators=(',', ':')) }}", "{{ u|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ esc|tojson }}", "{{ e|tojson(indent=4) }} {{ {}|tojson(indent=4) }} {{ [[], {}, [1]]|tojson(indent=1) }}", "{{ missing|tojson }}", "{{ {1: 2, none: 3, true: 4, 2.5: 1}|tojson }}", "{{ '<script>&\\'' | tojson }}", "{{ [1, [2]]|tojson(indent='--') }}",
    # methods
    "{{ spaces.strip() }}|{{ spaces.lstrip() }}|{{ spaces.rstrip() }}|{{ 'xyax'.strip('xy') }}|{{ '\n\na\n'.lstrip('\n') }}|{{ 'a日日'.rstrip('日') }}",
    "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.split(none, 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ ''.split(',') }} {{ ''.split() }} {{ 'a</t>b'.split('</t>')[-1] }}", "{{ 'a'.split('') }}", "{{ 'a\nb\r\nc'.splitlines() }} {{ 'a\nb\n'.splitlines(true) }}",
    "{{ s.startswith('He') }} {{ s.endswith('x') }} {{ s.startswith(('x', 'H')) }} {{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('q') }} {{ u.find('n') }} {{ s.count('l') }} {{ s.index('W') }} {{ ''.count('') }}", "{{ s.index('q') }}", "{{ s.startswith(1) }}",
    "{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ 'hELLO'.capitalize() }} {{ u.upper() }} {{ \"they're bill's\".title() }}", "{{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 2) }} {{ ','.join(words) }} {{ ','.join(l) }}", "{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }} {{ 'abc'.rpartition('=') }} {{ 'xay'.removeprefix('x') }} {{ 'xay'.removesuffix('y') }}",
    "{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '.') }}|{{ 'ab'.center(5, '*') }}|{{ 'abc'.center(6, '*') }}|{{ '-7'.zfill(4) }}|{{ 'abc'.center(2) }}", "{{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ ''.isdigit() }} {{ 'AB'.isupper() }} {{ 'aB'.islower() }} {{ '1'.isupper() }} {{ '½'.isnumeric() }}",
    "{{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.c.get('z', 1) }} {{ l.index(2) }} {{ l.count(3) }}", "{{ l.append(1) }}", "{{ d.update({'x': 1}) }}", "{{ d.pop('b') }}", "{% set x = l.append(3) %}{{ l }}", "{{ s.nosuch() }}",
    # statements
    "{% for x in l %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ loop.revindex }}/{{ loop.revindex0 }}={{ x }} {% endfor %}", "{% for x in e %}a{% else %}none{% endfor %}", "{% for x in missing %}a{% else %}none{% endfor %}", "{% for x in n %}a{% endfor %}", "{% for x in none_value %}a{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for c in u %}[{{ c }}]{% endfor %}", "{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}", "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}", "{% for (a, (b, c)) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }} {% else %}no{% endfor %}", "{% for x in l if x > 100 %}{{ x }}{% else %}no{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 10 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% for y in words %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}", "{% for x in l %}{{ loop.previtem }}<{{ x }}<{{ loop.nextitem }} {{ loop.cycle('a', 'b') }} {{ loop.changed(x // 5) }}|{% endfor %}",
    "{% for x in [1, [2, [3]]] recursive %}{% if x is number %}{{ x }}@{{ loop.depth }}{% else %}({{ loop(x) }}){% endif %}{% endfor %}", "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}", "{% set ns = namespace(x=0, y='q') %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z }}|{{ ns['x'] }}", "{% set x.y = 1 %}", "{% set d.y = 1 %}",
    "{% if missing %}a{% elif e %}b{% elif n %}c{% else %}d{% endif %}", "{% if n == 7 %}{% set q = 'in' %}{% endif %}{{ q }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set x %}a{{ n }}b{% endset %}{{ x }}|{{ x|length }}", "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x = [] %}{% set x = x + [1] %}{{ x }}", "{% set x = 1, 2 %}{{ x }}",
    "{% macro m(a, b='B', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(b=3, a=4) }} {{ m() }} {{ m(1, c=5) ~ '!' }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(4) }}", "{% set g = 5 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 6 %}{{ m() }}", "{% macro m(x) %}\n  {%- if x -%}\n  y\n  {%- endif -%}\n{% endmacro %}\n[{{ m(1) }}]",
    "{% macro w(t) %}<{{ t }}>{{ caller('q') }}</{{ t }}>{% endmacro %}{% call(z) w('b') %}body {{ z }}{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% filter upper %}abc {{ s }}{% endfilter %}", "{% filter trim|upper %} abc {% endfilter %}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "{% generation %}abc{% set zz = 1 %}{{ n }}{% endgeneration %}\n|{{ zz }}", "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "{{ raise_exception('no system role') }}", "{{ strftime_now('%Y-%m-%d %H:%M %d %b %Y') }}", "{{ range(5)|list }} {{ range(2, 5)|list }} {{ range(5, 0, -2)|list }} {% for i in range(3) %}{{ i }}{% endfor %}", "{{ range(1000000) }}", "{{ dict(a=1, b=2) }} {{ dict({'x': 1}, y=2) }} {{ dict([(1, 2)]) }}", "{{ namespace(a=1).a }} {{ namespace({'b': 2}).b }}",
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0].content %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}{{ system }}{{ rest|length }}", "{% for m in messages[::-1] %}{{ m.role }} {% endfor %}", "{{ messages[2].content is none }} {{ messages[2].tool_calls[0].id }} {{ messages[2]['tool_calls'][0]['n'] }} {{ messages[0].tool_calls is defined }} {{ messages[-1].role }}", "{% set ns = namespace(s='') %}{% for m in messages if m.content is string %}{% set ns.s = ns.s ~ m.content ~ '|' %}{% endfor %}{{ ns.s }}",
    "{%- for m in messages %}\n    {%- if m.role == 'user' %}\n        {{- '<u>' + m.content }}\n    {%- elif m.role == 'system' -%}\n        {{ m.content }}\n    {%- endif %}\n{%- endfor %}\n", "{% for message in messages %}\n{{ message.role }}\n{% endfor %}\nend",
    # faults
    "{% if %}x{% endif %}", "{% if t %}x", "{{ n", "{{ 'a }}", "{% for x l %}{% endfor %}", "{% endif %}", "{{ n + }}", "{% include 'x' %}", "{% extends 'x' %}", "{{ (1 }}", "{{ 1) }}", "{# open", "{% raw %}x", "{{ a b }}", "{% set true = 1 %}", "{% break %}", "{{ f(a=1, 2) }}", "{{ $ }}", "{{ n is }}", "{{ n | }}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ }}", "{% unknown %}", "{{ 'a'.b.c }}", "{% if t %}a{% else %}b{% else %}c{% endif %}",
]

TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Current weather; \"quoted\" <tags> & ünï",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
                   "required": ["city"]}}}]


def call(name, arguments):
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


CONVERSATIONS = {
    "user": {"messages": [{"role": "user", "content": "Hello"}]},
    "system": {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]},
    "two systems": {"messages": [{"role": "system", "content": "A"}, {"role": "system", "content": "B"}, {"role": "user", "content": "c"}]},
    "turns": {"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": "3"},
                           {"role": "assistant", "content": "4"}]},
    "tools": {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Weather?"}], "tools": TOOLS},
    "tool calls": {"messages": [
        {"role": "user", "content": "Weather in Paris and Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [call("get_weather", "{\"city\": \"Paris\"}"), call("get_weather", "{\"city\": \"Rome\"}")]},
        {"role": "tool", "content": "sunny"}, {"role": "tool", "content": "rain"}, {"role": "assistant", "content": "Sunny; rain."},
        {"role": "user", "content": "Thanks"}], "tools": TOOLS},
    "tool calls with text": {"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call("get_weather", {"city": "Zürich", "days": 2, "x": [1.5, None, True]})]},
        {"role": "tool", "content": "{\"t\": 3}"}], "tools": TOOLS},
    "reasoning": {"messages": [
        {"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "reasoning_content": "\nbecause\n"},
        {"role": "user", "content": "q2"}, {"role": "assistant", "content": "<think>\nhmm\n</think>\n\nb"}]},
    "empty": {"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}, {"role": "user", "content": " \n "}]},
    "unicode": {"messages": [{"role": "system", "content": "日本語で\u2028"}, {"role": "user", "content": "😀 ünï عربي \\ \"q\" 'a' <|im_end|>\r\n"}]},
    "no thinking": {"messages": [{"role": "user", "content": "q"}], "kwargs": {"enable_thinking": False}},
    "none": {"messages": []},
}


def special_tokens(config):
    names = {}
    for key in ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"):
        value = config.get(key)
        if value is not None:
            names[key] = value["content"] if isinstance(value, dict) else value
    return names


def conversations(folder):
    config = json.loads((folder / "tokenizer_config.json").read_text())
    cases = []
    for name, conversation in CONVERSATIONS.items():
        for add_generation_prompt in (False, True):
            names = dict(special_tokens(config), messages=conversation["messages"], tools=conversation.get("tools"), documents=None,
                         add_generation_prompt=add_generation_prompt)
            names.update(conversation.get("kwargs", {}))
            cases.append({"name": name, "conversation": conversation, "add_generation_prompt": add_generation_prompt,
                          **render(config["chat_template"], names)})
    return cases


def write(name, value):
    (OUT / name).write_text(json.dumps(value, ensure_ascii=True, indent=None) + "\n")


def main():
    root = Path(sys.argv[1])
    OUT.mkdir(parents=True, exist_ok=True)
    write("snippets.json", {"names": NAMES, "now": NOW.strftime("%Y-%m-%d %H:%M:%S"),
                            "snippets": [{"source": source, **render(source, NAMES)} for source in SNIPPETS]})
    for name in ("deepseek-v3", "qwen3"):
        write(f"{name}.json", {"folder": f"data/tokenizers/{name}", "cases": conversations(root / "data" / "tokenizers" / name)})


if __name__ == "__main__":
    main()
