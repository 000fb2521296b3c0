import { describe, it } from 'node:test';
import { showCycle, showHistory } from '../../src/cli/show-history.js';
import { blockText } from '../support/block-text.js';
import { matchesFile } from '../support/golden.js';
import { historyEntries } from '../support/status-reports.js';

describe('the history of a host', () => {
  it('is one line a cycle', () =>
    matchesFile('test/golden/history/list.txt', blockText(showHistory(historyEntries))));
  it('may be empty', () => matchesFile('test/golden/history/empty.txt', blockText(showHistory([]))));
  it('of one cycle is all it said', () =>
    matchesFile('test/golden/history/cycle.txt', blockText(showCycle(historyEntries[1]!))));
});
