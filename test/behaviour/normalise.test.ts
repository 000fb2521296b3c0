// The normaliser replaces everything that varies between runs, and nothing else.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createNormaliser } from './normalise.js';

const startMs = Date.parse('2026-03-01T12:00:00Z');
const normaliser = () =>
  createNormaliser({
    placeholders: [
      ['/tmp/x/scenario', 'SCENARIO'],
      ['/tmp/x', 'BASE'],
      ['127.0.0.1:4711', '127.0.0.1:PORT1'],
    ],
    startMs,
  });
const same = (one: string, other: string): void => assert.equal(normaliser()(one), normaliser()(other));
const different = (one: string, other: string): void =>
  assert.notEqual(normaliser()(one), normaliser()(other));

describe('the normaliser', () => {
  it('replaces a time of the scenario, a duration, a pid, a path and a port', () => {
    same('{"time":"2026-03-01T12:00:07.120Z"}', '{"time":"2026-03-01T12:01:09.000Z"}');
    same(`{"atMs":${startMs + 1}}`, `{"atMs":${startMs + 60_000}}`);
    same('{"durationMs":12,"pid":77}', '{"durationMs":1.5,"pid":4711}');
    same('activated in 0.1 s, 3 s ago', 'activated in 1.4 s, 12 s ago');
    assert.equal(
      normaliser()('/tmp/x/scenario/repo of /tmp/x on 127.0.0.1:4711'),
      'SCENARIO/repo of BASE on 127.0.0.1:PORT1',
    );
  });

  it('keeps a validity period, a number, a digest, a code and a name', () => {
    different('"expires":"2026-03-31T12:00:00Z"', '"expires":"2026-03-30T12:00:00Z"');
    different(`{"untilMs":${startMs + 7_200_000}}`, `{"untilMs":${startMs + 10_800_000}}`);
    different('{"exitCode":3}', '{"exitCode":4}');
    different('{"exitCode":3}', '{"exit":3}');
    different(`sha256:${'a'.repeat(64)}`, `sha256:${'b'.repeat(64)}`);
    different('{"timeoutMs":10}', '{"timeoutMs":11}');
    different('timestamp 6 d left', 'timestamp 7 d left');
  });

  it('numbers cycles, so that they stay distinct', () => {
    same('c-0000000a then c-0000000b', 'c-0000000f then c-0000000a');
    different('c-0000000a then c-0000000a', 'c-0000000f then c-0000000a');
  });
});
