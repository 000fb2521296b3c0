import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultTransportLimits } from '../../../src/core/limits.js';
import { downloadFromMirrors } from '../../../src/trust/download.js';
import type { AttemptOptions, Mirrors } from '../../../src/trust/mirrors/mirrors.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { signedTarget } from '../../kit/repository/archive-builder.js';
import { simulatedMirror } from '../../kit/repository/simulated-mirror.js';

const archive = Buffer.from('0123456789');

function mirrorsOver(source: ReturnType<typeof simulatedMirror>): {
  readonly mirrors: Pick<Mirrors, 'attempt'>;
  readonly asked: AttemptOptions[];
} {
  const asked: AttemptOptions[] = [];
  const mirrors: Pick<Mirrors, 'attempt'> = {
    attempt: async (act, options) => {
      asked.push(options);
      const value = await act(source, new AbortController().signal, 'no');
      return { value, mirror: source.location, failures: [] };
    },
  };
  return { mirrors, asked };
}

describe('a download from mirrors', () => {
  const target = signedTarget(archive, Buffer.from('{}'));

  it('opens the archive at any offset, as often as the caller wants', async () => {
    const source = simulatedMirror('https://a/', new Map([[target.archivePath, archive]]));
    const { mirrors } = mirrorsOver(source);
    const got: string[] = [];
    await downloadFromMirrors(
      { mirrors, target, transport: defaultTransportLimits },
      async (open, signal) => {
        for (const offset of [0, 4]) {
          for await (const chunk of open({ offset, seen: undefined, onBegin: () => undefined }, signal))
            got.push(chunk.toString());
        }
      },
    );
    assert.deepEqual(got, ['0123456789', '456789']);
  });

  it('sends an ETag only to the mirror that returned it, and reports that mirror', async () => {
    const asked: unknown[] = [];
    const begun: unknown[] = [];
    const source: RepositorySource = {
      ...simulatedMirror('https://a/'),
      async *stream(_path, { etag, onBegin }) {
        asked.push(etag);
        onBegin?.({ offset: 4, etag: '"v2"' });
        yield Buffer.alloc(0);
      },
    };
    const attempt: Mirrors['attempt'] = async (act) => {
      const value = await act(source, new AbortController().signal, 'no');
      return { value, mirror: source.location, failures: [] };
    };
    await downloadFromMirrors(
      { mirrors: { attempt }, target, transport: defaultTransportLimits },
      async (open, signal) => {
        for (const location of ['https://a/', 'https://b/']) {
          const seen = { location, etag: '"v1"' };
          for await (const _ of open({ offset: 4, seen, onBegin: (one) => begun.push(one) }, signal));
        }
      },
    );
    assert.deepEqual(asked, ['"v1"', undefined]);
    const seen = { location: 'https://a/', etag: '"v2"' };
    assert.deepEqual(begun, [
      { offset: 4, seen },
      { offset: 4, seen },
    ]);
  });

  it('limits each mirror to a minute and 64 kB a second, except the last one', async () => {
    const { mirrors, asked } = mirrorsOver(simulatedMirror('https://a/'));
    const transport = { ...defaultTransportLimits, archiveTimeoutMs: 1_800_000 };
    const large = { ...target, length: 6_400_000 };
    await downloadFromMirrors({ mirrors, target: large, transport }, async () => undefined);
    assert.deepEqual(
      asked.map(({ patienceMs, timeoutMs }) => [patienceMs, timeoutMs]),
      [[160_000, 7_200_000]],
    );
  });
});
