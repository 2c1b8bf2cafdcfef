"""Three hundred programs that try to get out of the sandbox, to stay in it for ever, or to fill it.

One a line; an arrow is the end of a line of the program.
"""

ESCAPES = r"""
open('/etc/passwd').read()
open('/tmp/synmod_was_here', 'w').write('x')
open('.env').read()
import os; os.listdir('/')
import os; os.environ
import os; os.getenv('HOME')
import os; os.system('ls')
import os; os.popen('ls')
import os; os.fork()
import os; os.kill(1, 9)
import os; os.remove('/tmp/x')
import os; os.urandom(8)
from pathlib import Path; Path('/etc/passwd').read_text()
from pathlib import Path; Path('/tmp/synmod_was_here').write_text('x')
from pathlib import Path; list(Path('/').iterdir())
from pathlib import Path; Path.home()
from pathlib import Path; Path('/etc').exists() or 1 / 0
import socket
import subprocess
import ctypes
import urllib.request
import http.client
import requests
import threading
import multiprocessing
import importlib
import builtins
import inspect
import gc
import signal
import pickle
import shutil
import tempfile
import sqlite3
import ssl
import asyncio.subprocess
import synmod
import pydantic_monty
import sys; sys.modules
import sys; sys.exit(3)
import sys; sys._getframe()
import sys; sys.settrace(print)
import sys; sys.stdin.read()
import sys; sys.path.append('/')
__import__('os').system('ls')
__builtins__['open']
__loader__
__spec__
globals()['__builtins__']
locals()['__builtins__']
vars()
compile('1', 'x', 'exec')
input('?')
breakpoint()
exit()
quit()
help()
memoryview(b'x').obj
().__class__.__base__.__subclasses__()
''.__class__.__mro__[1].__subclasses__()
(lambda: 0).__code__
(lambda: 0).__globals__
(lambda: 0).__closure__
f.__globals__
f.__code__.co_consts
print.__self__
print.__module__.__class__
len.__self__.open('/etc/passwd')
type('X', (), {})()
type(type)('X', (), {})
object.__subclasses__()
getattr((), '__class__').__base__
getattr(f, '__globals__')
setattr(f, '__code__', None)
'{0.__class__}'.format(1) + 1
'{0.__init__.__globals__}'.format(f)
f'{f.__globals__}'
(x for x in [1]).gi_frame.f_back
(x for x in [1]).gi_code
[].__reduce_ex__(2)
{}.__getattribute__('x')
Exception().__traceback__.tb_frame
try: 1 / 0⏎except Exception as e: e.__traceback__.tb_frame.f_globals['x']
try: 1 / 0⏎except Exception as e: e.__context__.__traceback__.tb_frame
import asyncio; asyncio.get_event_loop()
import asyncio; asyncio.create_subprocess_shell('ls')
import json; json.__loader__
import json; json.codecs
import re; re.sys
import math; math.__spec__.loader
import random; random._os
import datetime; datetime.sys
import collections; collections._sys
import typing; typing.sys
import functools; functools.__builtins__
import json; json.load(open('/etc/passwd'))
exec("import os; os.system('ls')")
eval("__import__('os')")
exec(open('/etc/passwd').read())
exec('open("/etc/shadow")')
eval('().__class__')
_call('["x", [], {}]')
await _call('x')
_inputs.__class__
_json.loads.__globals__
_use('x')
_call.__globals__
async def g(): pass⏎g().cr_frame
class A:⏎    def __del__(self): open('/etc/passwd')⏎A().__class__.__base__.__subclasses__()
class A:⏎    pass⏎A.__init__.__globals__
class A(object): pass
class A(metaclass=type): pass
import _thread
import _socket
import _io
import nt
import posix
import pty
import resource
import mmap
import fcntl
import cffi
import numpy
import code
import runpy
import site
import atexit
import faulthandler
import linecache; linecache.getlines('/etc/passwd')
import zipfile
import tarfile
import glob
import codecs
import marshal
import types
import weakref
import platform
import getpass
import webbrowser
import smtplib
import ftplib
import select
import selectors
import concurrent.futures
import ast
import dis
import tokenize
import trace
import pdb
import traceback
import logging
import warnings
""".strip("\n")

LOOPS = r"""
while True: pass
while 1: 1 + 1
for i in iter(int, 1): pass
x = [1]; [x.append(i) for i in x]
n = 0; exec('while True: n = 1')
(lambda g: g(g))(lambda g: g(g))
def r(): return r()⏎r()
def a(): b()⏎def b(): a()⏎a()
def r(n): return r(n + 1) + r(n + 1)⏎r(0)
sum(i for i in range(10**12))
max(range(10**12))
sorted(range(10**9))
any(False for i in range(10**12))
all(True for i in range(10**12))
list(map(str, range(10**10)))
'a' in (str(i) for i in range(10**12))
pow(3, 10**9)
3 ** (10 ** 8)
2 ** (2 ** 40)
10 ** 10 ** 10
1 << (1 << 40)
(10 ** 5000) ** 5000
x = 3; [x := x * x for i in range(100)]
str(7 ** 2000000)
int('9' * 10000000)
import math; math.factorial(10**7)
import math; math.comb(10**7, 5 * 10**6)
import re; re.match('(a+)+$', 'a' * 60 + 'b')
import re; re.match('(a|a)*$', 'a' * 60 + 'b')
import re; re.search('(x+x+)+y', 'x' * 60)
import re; re.fullmatch('(.*)*(.*)*(.*)*z', 'a' * 200)
import re; re.sub('(a*)*b', '', 'a' * 5000)
import re; re.findall('(?:a?){60}a{60}', 'a' * 60)
import re; [re.compile('a' * i) for i in range(10**7)]
import json; json.loads('[' * 10**7)
import json; json.loads('1' * 10**7)
import json; [json.dumps(list(range(10**5))) for i in range(10**6)]
import itertools; list(itertools.count())
import itertools; list(itertools.product(range(100), repeat=10))
import itertools; sum(1 for _ in itertools.permutations(range(20)))
import itertools; list(itertools.repeat(1))
import itertools; list(itertools.cycle([1]))
import collections; collections.deque(iter(int, 1))
import random; [random.random() for i in range(10**10)]
import time; time.sleep(10**9)
import time⏎while True: time.sleep(1)
import asyncio; await asyncio.sleep(10**9)
import asyncio⏎while True: await asyncio.sleep(0)
import datetime; [datetime.datetime.now() for i in range(10**9)]
try:⏎    while True: pass⏎except BaseException: pass
while True:⏎    try:⏎        while True: pass⏎    except BaseException: pass
try:⏎    while True: pass⏎finally:⏎    while True: pass
def g():⏎    while True: yield 1⏎sum(g())
sum(x for x in iter(int, 1))
x = {}⏎while True: x[len(x)] = 1
'x' * 10 ** 9 in 'y' * 10 ** 9
('a' * 10**6 + 'b').find('a' * 10**5 + 'c')
('ab' * 10**6).count('ba' * 10**5)
('a' * 10**7).replace('a', 'bb')
[('a' * 10**5).split('a') for i in range(10**6)]
sorted([str(i) for i in range(10**7)])
[sorted(range(10**5, 0, -1)) for i in range(10**5)]
set(range(10**9))
dict.fromkeys(range(10**9))
frozenset(i % 7 for i in range(10**11))
zip(*[range(10**6)] * 10**6)
list(zip(*[iter(range(10**9))] * 3))
divmod(10 ** 200000, 3 ** 100000) and [divmod(10 ** 200000, 3 ** 100000) for i in range(10**6)]
exec('exec(' * 100 + '1' + ')' * 100)
eval('(' * 10000 + '1' + ')' * 10000)
eval('-' * 100000 + '1')
eval('+'.join(['1'] * 10**6))
eval('[' * 5000 + ']' * 5000)
eval('lambda: ' * 5000 + '1')
exec('def f():\n' + ' pass\n' * 10**6)
exec('\n'.join(' ' * i + 'if 1:' for i in range(500)))
exec('x = ' * 10000 + '1')
exec('a' * 10**7)
exec('"' + 'a' * 10**7 + '"')
""".strip("\n")

FLOODS = r"""
while True: print('x')
while True: print('x' * 1000)
while True: print('x' * 10**6)
print('x' * 10**8)
for i in range(10**9): print(i)
print(*range(10**7))
print(list(range(10**6)) * 10)
print('\n' * 10**7)
print('\0' * 10**7)
print('\U0001f600' * 10**7)
while True: print('', end='')
import sys⏎while True: print('x' * 100, file=sys.stderr)
raise ValueError('x' * 10**7)
raise ValueError(list(range(10**6)))
assert 0, 'x' * 10**7
'x' * 10**9
'x' * 10**12
b'x' * 10**10
[0] * 10**9
[[0] * 10**5 for i in range(10**5)]
[0] * 10**8 + [1] * 10**8
(0,) * 10**9
{i: [i] * 100 for i in range(10**6)}
list(range(10**8))
tuple(range(10**8))
set(range(10**8))
bytearray(10**9)
bytes(10**10)
' '.join(['x' * 1000] * 10**6)
'%0999999999d' % 1
'{:999999999}'.format(1)
f'{1:>999999999}'
'x'.center(10**10)
'x'.ljust(10**10)
'1'.zfill(10**10)
'\t'.expandtabs(10**10)
str([[]] * 10**7)
repr('\0' * 10**8)
x = 'x'⏎while True: x += x
x = []⏎while True: x = [x, x]
x = []⏎while True: x.append(x)
x = [0]⏎while True: x.extend(x)
x = {}⏎while True: x = {1: x}
x = ()⏎while True: x = (x,)
x = []⏎for i in range(10**6): x = [x]⏎print(x)
x = {}⏎for i in range(10**5): x = {'a': x}⏎x == x
a = []; a.append(a); print(a); b = []; b.append(b); a == b
import json; a = []; a.append(a); json.dumps(a)
import json; json.dumps('x' * 10**8)
import json; json.dumps(['x' * 1000] * 10**6)
import json; json.loads('"' + 'x' * 10**8 + '"')
import re; re.sub('x', 'y' * 1000, 'x' * 10**6)
import re; re.compile('(' * 10000 + ')' * 10000)
import re; re.compile('x{1,1000}{1,1000}{1,1000}')
import copy; copy.deepcopy([[0] * 1000] * 10**4)
import collections; collections.Counter(range(10**8))
import collections; collections.deque(range(10**8))
import decimal; decimal.Decimal(10) ** 10**9
import decimal; decimal.getcontext().prec = 10**9; decimal.Decimal(1) / 3
import base64; base64.b64encode(b'x' * 10**9)
import hashlib; hashlib.sha256(b'x' * 10**9)
import functools; functools.reduce(lambda a, b: a + a, range(100), 'x')
import itertools; list(itertools.chain.from_iterable([range(10**9)]))
def g(n):⏎    yield from g(n + 1)⏎list(g(0))
list(iter(lambda: 'x' * 1000, 1))
[x for x in [0] * 1000 for y in [0] * 1000 for z in [0] * 1000]
{x: y for x in range(10**4) for y in range(10**4)}
'a,' * 10**8
('a,' * 10**6).split(',') * 100
int('1' * 4000) ** 4000
0.1 ** -10**9
""".strip("\n")

PROGRAMS = [line.replace("⏎", "\n") for text in (ESCAPES, LOOPS, FLOODS) for line in text.splitlines()]
