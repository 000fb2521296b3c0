import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createProgressLine } from '../../../../src/cli/console/progress-line.js';

const total = 2_000_000_000;

function at(line: ReturnType<typeof createProgressLine>, done: number, nowMs: number): string {
  return line({ done, total, unit: 'bytes' }, nowMs);
}

describe('the progress of a step', () => {
  it('is its amount and share at once, its rate and the time left when half a second was measured', () => {
    const line = createProgressLine();
    assert.equal(at(line, 0, 0), '0 B of 2.0 GB, 0 %');
    assert.equal(at(line, 10_000_000, 499), '10.0 MB of 2.0 GB, 0 %');
    assert.equal(at(line, 20_000_000, 500), '20.0 MB of 2.0 GB, 1 %, 40.0 MB/s, 0:50 left');
    assert.equal(at(line, 20_000_000, 60_000), '20.0 MB of 2.0 GB, 1 %, 333.3 kB/s, 1:39:00 left');
  });

  it('excludes earlier bytes from the rate', () => {
    const line = createProgressLine();
    at(line, 1_000_000_000, 0);
    assert.equal(at(line, 1_100_000_000, 10_000), '1.1 GB of 2.0 GB, 55 %, 10.0 MB/s, 1:30 left');
  });

  it('is measured again when the amount decreases', () => {
    const line = createProgressLine();
    at(line, 1_000_000_000, 0);
    assert.equal(at(line, 0, 10_000), '0 B of 2.0 GB, 0 %');
    assert.equal(at(line, 10_000_000, 11_000), '10.0 MB of 2.0 GB, 0 %, 10.0 MB/s, 3:19 left');
  });

  it('shows no rate without progress', () => {
    const line = createProgressLine();
    at(line, 5, 0);
    assert.equal(at(line, 5, 10_000), '5 B of 2.0 GB, 0 %');
  });

  it('counts complete files, and the share of the current one', () => {
    const line = createProgressLine();
    assert.equal(line({ done: 0, total: 4, unit: 'files' }, 0), '0 of 4 files, 0 %');
    assert.equal(line({ done: 1.5, total: 4, unit: 'files' }, 50), '1 of 4 files, 37 %');
  });

  it('is complete if there is nothing to do', () => {
    assert.equal(createProgressLine()({ done: 0, total: 0, unit: 'bytes' }, 0), '0 B of 0 B, 100 %');
  });
});
