// What publish, `repo check` and export say of how far they are: amounts that only grow, and come to the end.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import type { Amount, WorkReport } from '../../../../src/core/work-report.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { checkRepository } from '../../../../src/publisher/upkeep/check-repository.js';
import { exportRepository } from '../../../../src/publisher/upkeep/export-repository.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { listOf, withLine } from '../../../kit/delta/list-tree.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { type SampleRepository, sampleRepository } from '../../../kit/repository/sample-repository.js';

const list = listOf(2000);
const tree = (line: string) => ({ 'block.rpz': withLine(list, line), 'views/eu.yaml': 'eu: 1\n' });

interface ReportedAmount extends Amount {
  readonly text: string;
}

function recordedReport(): WorkReport & { of(step: string): readonly ReportedAmount[] } {
  const reported = new Map<string, ReportedAmount[]>();
  return {
    begin: () => undefined,
    progress: (step, amount, text = '') => {
      reported.set(step, [...(reported.get(step) ?? []), { ...amount, text }]);
    },
    of: (step) => reported.get(step) ?? [],
  };
}

function requireGrows(
  reported: readonly ReportedAmount[],
  { unit, min }: { unit: ReportedAmount['unit']; min: number },
): void {
  assert.ok(reported.length >= min, `reported ${reported.length} times`);
  for (const [index, { done, total, unit: actual }] of reported.entries()) {
    assert.equal(actual, unit);
    assert.equal(total, reported[0]?.total);
    assert.ok(done >= (reported[index - 1]?.done ?? 0) && done <= total, `${done} of ${total}`);
  }
}

async function published(dir: TempDir): Promise<SampleRepository> {
  const repository = sampleRepository(dir);
  for (const line of ['one', 'two', 'three']) await repository.publish(tree(line));
  return repository;
}

describe('how far work is', () => {
  it('is reported by a publish while it reads, packs and makes deltas', longCase, async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const report = recordedReport();
    const { release } = await repository.publish(tree('four'), { report });
    requireGrows(report.of('read'), { unit: 'files', min: 4 });
    assert.equal(report.of('read')[0]?.total, 2);
    assert.equal(report.of('read').at(-1)?.done, 2);
    requireGrows(report.of('pack'), { unit: 'bytes', min: 3 });
    assert.equal(report.of('pack').at(-1)?.done, report.of('pack')[0]?.total);
    requireGrows(report.of('delta'), { unit: 'bytes', min: 9 });
    assert.deepEqual(
      [...new Set(report.of('delta').map(({ text }) => text))],
      ['1 of 3   from serial 3', '2 of 3   from serial 2', '3 of 3   from serial 1'],
    );
    // The manifest is no part of it: all but that was counted when the last delta was made.
    const { done = 0, total = 0 } = report.of('delta').at(-1) ?? {};
    assert.equal(total - done, release.manifest.length);
  });

  it('is reported by a check for each archive and delta', longCase, async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const report = recordedReport();
    const checked = await checkRepository({
      repository: repository.directory,
      limits: defaultArchiveLimits,
      clock: repository.clock,
      report,
    });
    assert.deepEqual(checked.problems, []);
    const reported = report.of('archives');
    requireGrows(reported, { unit: 'bytes', min: 5 });
    assert.equal(reported[0]?.total, checked.archiveBytes * (2 + checked.deltas));
    assert.equal(reported.at(-1)?.done, reported[0]?.total);
    assert.equal(reported[0]?.text, '1 of 1   dns-edge/stable.tar.br');
  });

  it('is reported by an export for copied and for existing archives', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    for (const copied of [3, 0]) {
      const report = recordedReport();
      const result = await exportRepository({
        repository: repository.directory,
        directory: dir.join('stick'),
        clock: repository.clock,
        durableFs: createDurableFs(),
        lockWaitMs: 0,
        report,
      });
      assert.equal(result.copied, copied);
      const reported = report.of('export');
      requireGrows(reported, { unit: 'bytes', min: 6 });
      assert.equal(reported.at(-1)?.done, result.bytes);
      assert.equal(reported[0]?.total, result.bytes);
    }
  });
});
