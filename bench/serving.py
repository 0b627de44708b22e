#!/usr/bin/env python3
"""sol model against published serving results (bench/serving.csv).

    bench/serving.py            the table of docs/model.md, as Markdown
    bench/serving.py --learn    the two shares of the roofs, from the half of the rows that is learnt from
    bench/serving.py --check    whether docs/model.md has that table

A server reaches a share of each roof. One share of the memory bandwidth and one of the peaks are used for all rows, all GPUs,
all models; they come from the rows whose hash is even, and the score is that of the others. Nothing is fitted row by row.
"""
import concurrent.futures
import csv
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
MEMORY, PEAK = 65, 50  # percent, from --learn
WITHIN = 0.25


def rows():
    with open(os.path.join(HERE, 'serving.csv')) as f:
        return list(csv.DictReader(line for line in f if not line.startswith('#')))


def name(row):
    return ' '.join(row[k] for k in ('source', 'gpu', 'model', 'tp', 'batch', 'input', 'output', 'metric'))


def is_learnt(row):
    return hashlib.sha256(name(row).encode()).digest()[0] % 2 == 0


def model(row, shares, *more):
    # In fp8 and fp4 activations and cache are fp8: 4-bit weights are multiplied at the 4-bit peak.
    dtype = row['dtype']
    kv = 'fp8' if dtype in ('fp8', 'fp4') else dtype
    command = [SOL, 'model', row['model'], '--device', row['gpu'], '--tp', row['tp'], '--dtype', dtype, '--weight-dtype', dtype,
               '--kv-dtype', kv, '--fused', '--graph', '--json', '--bandwidth', f'{shares[0]}%', '--peak', f'{shares[1]}%']
    return json.loads(subprocess.run(command + list(more), capture_output=True, check=True).stdout)


def batch_of(row, shares):
    """As many sequences as fit, half of their output written on average; servers leave a tenth of what is free."""
    if row['batch'] != '0':
        return int(row['batch'])
    length = int(row['input']) + int(row['output']) // 2
    memory = model(row, shares, '--phase', 'decode', '--context', str(length))['memory']
    free = memory['device_bytes'] - memory['weight_bytes']
    return max(1, int(0.9 * free / (memory['kv_bytes_per_token'] * length)))


def predict(row, shares):
    batch, tokens_in, tokens_out = batch_of(row, shares), int(row['input']), int(row['output'])
    first = model(row, shares, '--batch', str(batch), '--context', str(tokens_in))['total_us']
    if row['metric'] == 'first_ms':
        return first / 1e3
    step = model(row, shares, '--phase', 'decode', '--batch', str(batch), '--context', str(tokens_in + tokens_out // 2))['total_us']
    seconds = (first + step * (tokens_out - 1)) / 1e6
    if row['metric'] == 'latency_ms':
        return seconds * 1e3
    return batch * tokens_out / seconds / (int(row['tp']) if row['metric'] == 'tokens_s_gpu' else 1)


def error(row, shares):
    """Above 0: predicted faster than it was."""
    ratio = predict(row, shares) / float(row['value'])
    return (1 / ratio if row['metric'].endswith('_ms') else ratio) - 1


def errors(some, shares):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda row: error(row, shares), some))


def learn():
    half = [row for row in rows() if is_learnt(row)]
    def cost(shares):
        return statistics.median(abs(math.log1p(e)) for e in errors(half, shares))
    best = min(itertools.product(range(50, 96, 5), range(35, 86, 5)), key=cost)
    print(f'memory {best[0]}%, peaks {best[1]}%: median error {100 * (math.exp(cost(best)) - 1):.0f}% on {len(half)} rows')


def summary(some, values):
    good = sum(abs(e) <= WITHIN for e in values)
    return f'{good} of {len(some)} within 25%, median {100 * statistics.median(abs(e) for e in values):.0f}%'


def table():
    every = rows()
    at_roof, values = errors(every, (100, 100)), errors(every, (MEMORY, PEAK))
    lines = [f'At {MEMORY}% of the memory bandwidth and {PEAK}% of the peaks:', '',
             '| source | GPU | model | GPUs | batch | in, out | published | predicted | error | at the roofs | rows |',
             '|---|---|---|---|---|---|---|---|---|---|---|']
    units = {'tokens_s': 'tokens/s', 'tokens_s_gpu': 'tokens/s/GPU', 'latency_ms': 'ms', 'first_ms': 'ms, first token'}
    for row, roof, e in zip(every, at_roof, values):
        value = float(row['value'])
        predicted = value / (1 + e) if row['metric'].endswith('_ms') else value * (1 + e)
        lines.append(f"| {row['source']} | {row['gpu']} | {row['model']} {row['dtype']} | {row['tp']} | {row['batch'] if row['batch'] != '0' else 'full'} "
                     f"| {row['input']}, {row['output']} | {value:g} {units[row['metric']]} | {predicted:.4g} | {100 * e:+.0f}%{'' if abs(e) <= WITHIN else ' (!)'} "
                     f"| {100 * roof:+.0f}% | {'learnt' if is_learnt(row) else 'scored'} |")
    scored = [(row, e) for row, e in zip(every, values) if not is_learnt(row)]
    lines += ['', f"Rows that were only scored: {summary(scored, [e for _, e in scored])}. All: {summary(every, values)}."]
    for source in dict.fromkeys(row['source'] for row in every):
        part = [e for row, e in zip(every, values) if row['source'] == source]
        lines.append(f'- {source}: {summary(part, part)}')
    return '\n'.join(lines)


def main():
    if '--learn' in sys.argv:
        return learn()
    text = table()
    if '--check' in sys.argv:
        with open(os.path.join(HERE, '..', 'docs', 'model.md')) as f:
            return None if text in f.read() else sys.exit('docs/model.md: the table of published results is not what bench/serving.py prints')
    print(text)


main()
