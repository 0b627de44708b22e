#!/usr/bin/env python3
"""sol model against published serving results (bench/serving.csv).

    bench/serving.py            the table of docs/model.md, as Markdown
    bench/serving.py --learn    the three constants, from the half of the rows that is learnt from
    bench/serving.py --check    whether docs/model.md has that table, and whether sol model itself says the same

A server reaches a share of the memory bandwidth, a share of what its GPU's products were measured to reach, and takes some
time for itself in every pass: three constants for all rows, all GPUs, all models and programs. They come from the rows whose
hash is even; the score is that of the others, and of rows that were added when the constants stood. Nothing is fitted row by
row. A row that was published as faster than the roofs cannot be what it says, and is neither learnt from nor scored.
"""
import concurrent.futures
import csv
import functools
import hashlib
import itertools
import json
import math
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOL = os.environ.get('SOL', os.path.join(HERE, '..', 'build', 'sol'))
MEMORY, PRODUCTS, HOST_US = 90, 75, 4000  # percent, percent, microseconds: from --learn
WITHIN = 0.25

# The share of the peak that the best matrix product reaches, which falls as GPUs become more limited by power: Stas Bekman, Machine
# Learning Engineering, compute/accelerator/README.md, "Maximum Achievable Matmul FLOPS comparison table". That has no fp4 and of the
# MI300X no fp8: the next wider type's share is taken. It has no L40S: the median of the others.
REACHED = {('a100', 'fp16'): 0.869, ('a100', 'bf16'): 0.869, ('h100', 'bf16'): 0.803, ('h100', 'fp8'): 0.709, ('h200', 'fp8'): 0.734,
           ('b200', 'fp4'): 0.763, ('mi300x', 'fp8'): 0.514}
# Programs whose decoding attention did not share keys and values among the query heads of a group: TensorRT-LLM before 0.7, by
# NVIDIA's own account (README of v0.7: "2.4x faster on Llama-70B with recent improvements to TensorRT-LLM GQA").
UNGROUPED = {'trt05', 'trt061', 'trth200'}


def rows():
    with open(os.path.join(HERE, 'serving.csv')) as f:
        return list(csv.DictReader(line for line in f if not line.startswith('#')))


def name(row):
    return ' '.join(row[k] for k in ('source', 'gpu', 'model', 'tp', 'batch', 'input', 'output', 'metric'))


def is_learnt(row):
    return not row['added'] and hashlib.sha256(name(row).encode()).digest()[0] % 2 == 0


def model(row, *more):
    # In fp8 and fp4 activations and cache are fp8: 4-bit weights are multiplied at the 4-bit peak.
    dtype = row['dtype']
    kv = 'fp8' if dtype in ('fp8', 'fp4') else dtype
    command = [SOL, 'model', row['model'], '--device', row['gpu'], '--tp', row['tp'], '--dtype', dtype, '--weight-dtype', dtype,
               '--kv-dtype', kv, '--fused', '--graph', '--json', *more]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def batch_of(row):
    """As many sequences as fit with all of their output, which is what TensorRT-LLM's scheduler admits unless told otherwise
    (GUARANTEED_NO_EVICT), in nine tenths of what the weights leave, its default for the cache."""
    if row['batch'] != '0':
        return int(row['batch'])
    length = int(row['input']) + int(row['output'])
    memory = model(row, '--phase', 'decode', '--context', str(length))['memory']
    free = memory['device_bytes'] - memory['weight_bytes']
    return max(1, int(0.9 * free / (memory['kv_bytes_per_token'] * length)))


def passes(row):
    """What sol model is asked: the prompts, and the decoding step in the middle of the output."""
    batch, tokens_in, tokens_out = str(batch_of(row)), int(row['input']), int(row['output'])
    return [('--batch', batch, '--context', str(tokens_in)),
            ('--phase', 'decode', '--batch', batch, '--context', str(tokens_in + tokens_out // 2))]


ENDLESS = '1000000000%'


@functools.lru_cache(None)
def times(key):
    """Of both passes: (memory, arithmetic) of every kernel at the roofs, and what has no roof, in microseconds."""
    row, more = dict(key[0]), key[1]
    out = []
    for asked in passes(row):
        memory, products = model(row, *asked, *more, '--peak', ENDLESS), model(row, *asked, *more, '--bandwidth', ENDLESS)
        pairs = [(m['time_us'], p['time_us']) for m, p in zip(memory['kernels'], products['kernels']) if m['part'] != 'link']
        links = sum(k['time_us'] for k in memory['kernels'] if k['part'] == 'link')
        out.append((pairs, links + memory['launch_us']))
    return out


def times_of(row, grouped=False):
    ungrouped = ('--ungrouped',) if row['source'] in UNGROUPED and not grouped else ()
    return times((tuple(row.items()), ungrouped))


def reached(row):
    return REACHED.get((row['gpu'], row['dtype']), statistics.median(REACHED.values()))


def answer(row, first, step):
    """The published metric, from the microseconds of the prompts and of a step."""
    tokens_out, batch = int(row['output']), batch_of(row)
    if row['metric'] == 'first_ms':
        return first / 1e3
    seconds = (first + step * (tokens_out - 1)) / 1e6
    if row['metric'] == 'latency_ms':
        return seconds * 1e3
    return batch * tokens_out / seconds / (int(row['tp']) if row['metric'] == 'tokens_s_gpu' else 1)


def error_of(row, value):
    """Above 0: predicted faster than it was."""
    ratio = value / float(row['value'])
    return (1 / ratio if row['metric'].endswith('_ms') else ratio) - 1


def predict(row, constants):
    memory, products, host = constants[0] / 100, constants[1] / 100 * reached(row), constants[2]
    first, step = (sum(max(m / memory, p / products) for m, p in pairs) + other + host for pairs, other in times_of(row))
    return answer(row, first, step)


def roof(row):
    """What no server can beat: the kernels at their roofs, launches and links at no cost."""
    first, step = (sum(max(pair) for pair in pairs) for pairs, _ in times_of(row, grouped=True))
    return error_of(row, answer(row, first, step))


def error(row, constants):
    return error_of(row, predict(row, constants))


def read_all(every):
    """Asks sol model everything once, two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(times_of, every))
        return dict(zip(map(name, every), pool.map(roof, every)))


def learn():
    every = rows()
    roofs = read_all(every)
    half = [row for row in every if is_learnt(row) and roofs[name(row)] >= 0]
    def cost(constants):
        return statistics.mean(min(1, abs(math.log1p(error(row, constants)))) for row in half)
    best = min(itertools.product(range(60, 101, 5), range(60, 101, 5), range(0, 6001, 500)), key=cost)
    print(f'memory {best[0]}%, products {best[1]}%, {best[2]} us a pass: mean error {100 * (math.exp(cost(best)) - 1):.0f}% on {len(half)} rows')


def summary(values):
    good = sum(abs(e) <= WITHIN for e in values)
    return f'{good} of {len(values)} within 25%, median {100 * statistics.median(abs(e) for e in values):.0f}%'


def lines_of(every, errors, roofs):
    units = {'tokens_s': 'tokens/s', 'tokens_s_gpu': 'tokens/s/GPU', 'latency_ms': 'ms', 'first_ms': 'ms, first token'}
    for row in every:
        value, e, use = float(row['value']), errors[name(row)], use_of(row, roofs)
        predicted = value / (1 + e) if row['metric'].endswith('_ms') else value * (1 + e)
        batch = row['batch'] if row['batch'] != '0' else f'full, {batch_of(row)}'
        yield (f"| {row['source']} | {row['gpu']} | {row['model']} {row['dtype']} | {row['tp']} | {batch} | {row['input']}, {row['output']} "
               f"| {value:g} {units[row['metric']]} | {predicted:.4g} | {100 * e:+.0f}%{'' if abs(e) <= WITHIN else ' (!)'} "
               f"| {100 * roofs[name(row)]:+.0f}% | {use} |")


def use_of(row, roofs):
    if roofs[name(row)] < 0:
        return 'faster than the roof'
    return 'added later' if row['added'] else 'learnt' if is_learnt(row) else 'scored'


def table():
    every = rows()
    roofs = read_all(every)
    errors = {name(row): error(row, (MEMORY, PRODUCTS, HOST_US)) for row in every}
    by_use = {use: [errors[name(row)] for row in every if use_of(row, roofs) == use] for use in ('learnt', 'scored', 'added later')}
    lines = [f'At {MEMORY}% of the memory bandwidth, {PRODUCTS}% of what products reach, and {HOST_US / 1e3:g} ms for every pass:', '',
             '| source | GPU | model | GPUs | batch | in, out | published | predicted | error | at the roofs | rows |',
             '|---|---|---|---|---|---|---|---|---|---|---|', *lines_of(every, errors, roofs), '']
    lines += [f'- Rows that were only scored: {summary(by_use["scored"])}.', f'- Rows that were added when the constants stood: {summary(by_use["added later"])}.',
              f'- Rows that the constants were learnt from: {summary(by_use["learnt"])}.', '',
              'By benchmark, which is a source, a GPU and a model:', '', '| source | GPU | model | rows within 25% | worst |', '|---|---|---|---|---|']
    whole = 0
    benchmarks = dict.fromkeys((row['source'], row['gpu'], row['model']) for row in every if roofs[name(row)] >= 0)
    for key in benchmarks:
        part = [errors[name(row)] for row in every if (row['source'], row['gpu'], row['model']) == key and roofs[name(row)] >= 0]
        good = sum(abs(e) <= WITHIN for e in part)
        whole += good == len(part)
        lines.append(f"| {' | '.join(key)} | {good} of {len(part)} | {100 * max(part, key=abs):+.0f}% |")
    lines += ['', f'{whole} of {len(benchmarks)} benchmarks are wholly within 25%.']
    return '\n'.join(lines)


def same_by_hand():
    """sol model with the constants as options says what predict() adds up."""
    row = next(row for row in rows() if row['model'] == 'llama-2-70b' and int(row['tp']) > 1)
    options = ['--bandwidth', f'{MEMORY}%', '--peak', f'{PRODUCTS * reached(row)}%', '--host', f'{HOST_US}us', '--ungrouped']
    first, step = (model(row, *asked, *options)['total_us'] for asked in passes(row))
    return abs(answer(row, first, step) / predict(row, (MEMORY, PRODUCTS, HOST_US)) - 1) < 1e-6


def main():
    if '--learn' in sys.argv:
        return learn()
    text = table()
    if '--check' in sys.argv:
        if not same_by_hand():
            sys.exit('sol model with --bandwidth, --peak, --host and --ungrouped differs from what bench/serving.py adds up')
        with open(os.path.join(HERE, '..', 'docs', 'model.md')) as f:
            return None if text in f.read() else sys.exit('docs/model.md: the table of published results is not what bench/serving.py prints')
    print(text)


main()
