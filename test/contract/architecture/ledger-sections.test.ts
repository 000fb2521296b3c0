// Each member of the ledger has one owner. tsc checks that a spread of a ledger is not a ledger: the build
// fails if a line below that expects an error has none.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { emptyLedger, type Ledger, ledgerSection } from '../../../src/agent/state/ledger.js';
import { readSources, sourceFile } from '../../kit/sources/source-files.js';
import { hold } from './layers.js';
import { castsToLedger, declaredSections, ledgerOwners, oddSections, sealedIn } from './ledger-sections.js';

const sources = readSources();

describe('the ledger', () => {
  it('has one owner for each member, as in the table', () => {
    const owners = Object.entries(ledgerOwners).map(([member, path]) => `${member}: ${path}`);
    assert.deepEqual(declaredSections(sources), owners.sort());
  });

  it('is changed only by sections of one file each', () => {
    hold(
      oddSections(sources),
      'a section that other files can use, or that this test cannot read, has no single owner',
    );
  });

  it('is cast in one place', () => {
    assert.deepEqual(castsToLedger(sources), [sealedIn], 'a second cast makes ledgers past every owner');
  });
});

describe('the rules of sections', () => {
  const owner = sourceFile('agent/a/one.ts', "const changeOne = ledgerSection('pause', 'holds');\n");

  it('report a second owner', () => {
    const second = sourceFile('agent/b/two.ts', "const changeTwo = ledgerSection(\n  'pause',\n);\n");
    const found = ['holds: agent/a/one.ts', 'pause: agent/a/one.ts', 'pause: agent/b/two.ts'];
    assert.deepEqual(declaredSections([owner, second]), found);
  });

  it('report a section that is exported, computed or renamed', () => {
    const odd = [
      "export const change = ledgerSection('pause');",
      'const change = ledgerSection(...names);',
      "return ledgerSection('pause')(ledger, {});",
      "import { ledgerSection as section } from '../state/ledger.js';",
    ].map((text, index) => sourceFile(`agent/x/${index}.ts`, text));
    const paths = odd.map(({ path }) => path);
    assert.deepEqual(oddSections([...odd, owner]), paths);
  });

  it('report a cast', () => {
    const cast = sourceFile('agent/x.ts', 'write({ ...ledger } as unknown as Ledger);');
    const type = sourceFile('agent/y.ts', "const none = {} as Ledger['workers'];");
    assert.deepEqual(castsToLedger([cast, type]), ['agent/x.ts']);
  });
});

describe('a section', () => {
  const changePause = ledgerSection('pause', 'holds');
  const pause = { by: 'me', reason: 'why', atMs: 1 };

  it('changes its own members, and removes undefined ones', () => {
    const paused = changePause(emptyLedger(), { pause });
    assert.deepEqual(paused, { ...emptyLedger(), pause });
    assert.deepEqual(changePause(paused, { pause: undefined }), emptyLedger());
    const more = { pause, nextGeneration: 9 };
    assert.equal(changePause(emptyLedger(), more).nextGeneration, 1);
  });

  it('is the only function that makes a ledger', () => {
    const ledger = emptyLedger();
    const { pause: _, ...rest } = ledger;
    // @ts-expect-error a spread has no brand of a ledger
    const spread: Ledger = { ...ledger, pause };
    // @ts-expect-error a rest of a ledger has no brand either
    const left: Ledger = rest;
    // @ts-expect-error a required member cannot be removed
    changePause(ledger, { holds: undefined });
    // @ts-expect-error a member of another section
    changePause(ledger, { workers: {} });
    assert.ok(spread !== left);
  });
});
