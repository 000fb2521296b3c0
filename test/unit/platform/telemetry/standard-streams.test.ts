// Text on failing streams and descriptors: which text is written, which is counted as lost, and the order.
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, it } from 'node:test';
import {
  type LogCalls,
  openLogOutput,
  openStreamText,
  type TextLosses,
} from '../../../../src/platform/telemetry/standard-streams.js';

/** A descriptor that accepts as many bytes as the test sets, or fails. */
function descriptor() {
  let written = '';
  let takes: (bytes: Uint8Array) => number = (bytes) => bytes.length;
  const laters: (() => void)[] = [];
  const exits: (() => void)[] = [];
  let waits = 0;
  const calls: LogCalls = {
    write: (bytes) => {
      const count = takes(bytes);
      written += Buffer.from(bytes.subarray(0, count)).toString();
      return count;
    },
    later: (retry) => void laters.push(retry),
    wait: () => {
      waits += 1;
    },
    onExit: (flush) => void exits.push(flush),
  };
  const failing = (code: string) => (): number => {
    throw Object.assign(new Error(code), { code });
  };
  return {
    calls,
    written: () => written,
    takesAll: () => {
      takes = (bytes) => bytes.length;
    },
    fails: (code: string) => {
      takes = failing(code);
    },
    /** Accepts so many bytes of the next write, then fails. */
    takesOnly: (count: number, code: string) => {
      takes = () => {
        takes = failing(code);
        return count;
      };
    },
    momentPasses: () => laters.splice(0).forEach((retry) => void retry()),
    ends: () => exits.forEach((flush) => void flush()),
    waits: () => waits,
  };
}

describe('the output of a log', () => {
  it('counts lines that a full disk rejects, and writes the next ones', () => {
    const stderr = descriptor();
    const output = openLogOutput({ calls: stderr.calls });
    output.write('one\n');
    assert.deepEqual(output.losses(), { lines: 0 });
    stderr.fails('ENOSPC');
    output.write('two\n');
    output.write('three\nfour\n');
    stderr.takesAll();
    output.write('five\n');
    assert.equal(stderr.written(), 'one\nfive\n');
    assert.deepEqual(output.losses(), { lines: 3, code: 'ENOSPC' });
  });

  it('ends a line that was written in part before the next one', () => {
    const stderr = descriptor();
    const output = openLogOutput({ calls: stderr.calls });
    stderr.takesOnly(3, 'ENOSPC');
    output.write('{"cut":true}\n');
    output.write('lost\n');
    stderr.takesAll();
    output.write('whole\n');
    assert.equal(stderr.written(), '{"c\nwhole\n');
    assert.deepEqual(output.losses(), { lines: 2, code: 'ENOSPC' });
  });

  it('reports the losses once, after the first line that is written again', () => {
    const stderr = descriptor();
    const reports: TextLosses[] = [];
    const output = openLogOutput({
      calls: stderr.calls,
      onRecovered: (losses) => {
        reports.push(losses);
        output.write('a report\n');
      },
    });
    stderr.fails('EPIPE');
    output.write('one\n');
    output.write('two\n');
    assert.deepEqual(reports, []);
    stderr.takesAll();
    output.write('three\n');
    output.write('four\n');
    assert.deepEqual(reports, [{ lines: 2, code: 'EPIPE' }]);
    assert.equal(stderr.written(), 'three\na report\nfour\n');
  });

  it('keeps the lines for a reader that is slow, in their order', () => {
    const stderr = descriptor();
    const output = openLogOutput({ calls: stderr.calls });
    stderr.takesOnly(2, 'EAGAIN');
    output.write('one\n');
    stderr.takesAll();
    output.write('two\n');
    assert.equal(stderr.written(), 'on');
    stderr.momentPasses();
    output.write('three\n');
    assert.equal(stderr.written(), 'one\ntwo\nthree\n');
    assert.deepEqual(output.losses(), { lines: 0 });
  });

  it('tries again at each moment while the reader reads nothing', () => {
    const stderr = descriptor();
    const output = openLogOutput({ calls: stderr.calls });
    stderr.fails('EAGAIN');
    output.write('one\n');
    stderr.momentPasses();
    stderr.momentPasses();
    stderr.takesAll();
    stderr.momentPasses();
    assert.equal(stderr.written(), 'one\n');
  });

  it('loses lines beyond a megabyte for a reader that never reads', () => {
    const stderr = descriptor();
    const output = openLogOutput({ calls: stderr.calls });
    stderr.fails('EAGAIN');
    const line = `${'x'.repeat(99_999)}\n`;
    for (let count = 0; count < 12; count += 1) output.write(line);
    assert.deepEqual(output.losses(), { lines: 2, code: 'EAGAIN' });
  });

  it('gives a slow reader a bounded time at the end of the process', () => {
    const stderr = descriptor();
    const output = openLogOutput({ calls: stderr.calls });
    stderr.fails('EAGAIN');
    output.write('one\n');
    stderr.ends();
    assert.equal(stderr.waits(), 20);
    stderr.takesAll();
    output.write('two\n');
    assert.equal(stderr.written(), 'one\ntwo\n');
  });
});

describe('text on a stream', () => {
  const failing = (code?: string): Writable =>
    new Writable({
      emitClose: false,
      autoDestroy: false,
      write: (_chunk, _encoding, done) =>
        done(code === undefined ? null : Object.assign(new Error(code), { code })),
    });

  it('that fails throws nothing, and is counted when it has settled', async () => {
    let losses = 0;
    const text = openStreamText(failing('EPIPE'), () => {
      losses += 1;
    });
    text.write('one\ntwo\n');
    assert.deepEqual(await text.settled(), { lines: 2, code: 'EPIPE' });
    assert.equal(losses, 1);
  });

  it('without errors has no losses, and writes no empty text, which fails on a full device', async () => {
    const text = openStreamText(failing());
    text.write('one\n');
    assert.deepEqual(await text.settled(), { lines: 0 });
    const full = openStreamText(failing('ENOSPC'));
    full.write('');
    assert.deepEqual(await full.settled(), { lines: 0 });
  });
});
