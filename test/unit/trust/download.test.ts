import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultTransportLimits } from '../../../src/core/limits.js';
import { downloadFromMirrors } from '../../../src/trust/download.js';
import type { AttemptOptions, Mirrors } from '../../../src/trust/mirrors/mirrors.js';
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

  it('opens the archive at any place, as often as its receiver likes', async () => {
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

  it('gives a mirror a minute and 64 kB a second while another one is left, and at last the whole time', async () => {
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
