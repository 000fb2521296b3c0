import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { joinSignals } from '../../../../src/platform/time/join-signals.js';

describe('joined signals', () => {
  it('abort with the first of them, and its reason', () => {
    const [one, other] = [new AbortController(), new AbortController()];
    using joined = joinSignals(one.signal, undefined, other.signal);
    assert.equal(joined.signal.aborted, false);
    other.abort('enough');
    one.abort('late');
    assert.deepEqual([joined.signal.aborted, joined.signal.reason], [true, 'enough']);
  });

  it('are aborted if one of them was aborted before', () => {
    const one = new AbortController();
    one.abort('before');
    using joined = joinSignals(new AbortController().signal, one.signal);
    assert.deepEqual([joined.signal.aborted, joined.signal.reason], [true, 'before']);
  });

  it('may be many on one signal, without a warning of a leak', async () => {
    const warned: string[] = [];
    const listen = (warning: Error): void => void warned.push(warning.name);
    process.on('warning', listen);
    const long = new AbortController();
    const joined = Array.from({ length: 20 }, () => joinSignals(long.signal));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', listen);
    for (const one of joined) one[Symbol.dispose]();
    assert.deepEqual(warned, []);
  });

  it('may have many listeners, as for each address of a server, without a warning of a leak', async () => {
    const warned: string[] = [];
    const listen = (warning: Error): void => void warned.push(warning.name);
    process.on('warning', listen);
    using joined = joinSignals(new AbortController().signal);
    for (let at = 0; at < 40; at += 1) joined.signal.addEventListener('abort', () => at);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', listen);
    assert.deepEqual(warned, []);
  });

  it('leave no listener on a signal that continues, after a disposal or an abort', () => {
    const long = new AbortController();
    const traces = (): unknown[] => {
      // AbortSignal.any stores dependent signals under this symbol, which only its description identifies.
      const symbols = Object.getOwnPropertySymbols(long.signal).filter((one) =>
        String(one).includes('Dependant'),
      );
      return symbols.flatMap((one) => [...((long.signal as never)[one] as Iterable<unknown>)]);
    };
    AbortSignal.any([new AbortController().signal, long.signal]);
    const before = traces().length;
    assert.ok(before > 0, 'Node keeps them elsewhere now');
    for (let uses = 0; uses < 10; uses += 1) {
      const short = new AbortController();
      using joined = joinSignals(short.signal, long.signal);
      if (uses % 2 === 0) short.abort();
      assert.equal(joined.signal.aborted, uses % 2 === 0);
    }
    assert.equal(getEventListeners(long.signal, 'abort').length, 0);
    assert.equal(traces().length, before);
  });
});
