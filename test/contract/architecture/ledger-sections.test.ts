// Holds the ledger to one owner for each of its members. That a spread of a ledger is none is tsc's to say: the build
// fails where one of the lines below that expect an error has none.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { emptyLedger, type Ledger, ledgerSection } from '../../../src/agent/state/ledger.js';
import { readSources, sourceFile } from '../../kit/sources/source-files.js';
import { hold } from './layers.js';
import { castsToLedger, declaredSections, ledgerOwners, oddSections, sealedIn } from './ledger-sections.js';

const sources = readSources();

describe('the ledger', () => {
  it('has one owner for each member, which is the one that the table names', () => {
    const owners = Object.entries(ledgerOwners).map(([member, path]) => `${member}: ${path}`);
    assert.deepEqual(declaredSections(sources), owners.sort());
  });

  it('is changed by sections that belong to one file each', () => {
    hold(
      oddSections(sources),
      'a section that others can use, or that cannot be read here, has no one owner',
    );
  });

  it('is sealed in one place', () => {
    assert.deepEqual(castsToLedger(sources), [sealedIn], 'a second cast makes ledgers past every owner');
  });
});

describe('the rules of sections', () => {
  const owner = sourceFile('agent/a/one.ts', "const changeOne = ledgerSection('pause', 'holds');\n");

  it('see a second owner', () => {
    const second = sourceFile('agent/b/two.ts', "const changeTwo = ledgerSection(\n  'pause',\n);\n");
    const found = ['holds: agent/a/one.ts', 'pause: agent/a/one.ts', 'pause: agent/b/two.ts'];
    assert.deepEqual(declaredSections([owner, second]), found);
  });

  it('see a section that is lent, computed or under another name', () => {
    const odd = [
      "export const change = ledgerSection('pause');",
      'const change = ledgerSection(...names);',
      "return ledgerSection('pause')(ledger, {});",
      "import { ledgerSection as section } from '../state/ledger.js';",
    ].map((text, index) => sourceFile(`agent/x/${index}.ts`, text));
    const paths = odd.map(({ path }) => path);
    assert.deepEqual(oddSections([...odd, owner]), paths);
  });

  it('see a cast', () => {
    const cast = sourceFile('agent/x.ts', 'write({ ...ledger } as unknown as Ledger);');
    const type = sourceFile('agent/y.ts', "const none = {} as Ledger['workers'];");
    assert.deepEqual(castsToLedger([cast, type]), ['agent/x.ts']);
  });
});

describe('a section', () => {
  const changePause = ledgerSection('pause', 'holds');
  const pause = { by: 'me', reason: 'why', atMs: 1 };

  it('changes its own members, and takes out what is undefined', () => {
    const paused = changePause(emptyLedger(), { pause });
    assert.deepEqual(paused, { ...emptyLedger(), pause });
    assert.deepEqual(changePause(paused, { pause: undefined }), emptyLedger());
    const more = { pause, nextGeneration: 9 };
    assert.equal(changePause(emptyLedger(), more).nextGeneration, 1);
  });

  it('is the only way to a ledger', () => {
    const ledger = emptyLedger();
    const { pause: _, ...rest } = ledger;
    // @ts-expect-error a spread leaves out what makes it a ledger
    const spread: Ledger = { ...ledger, pause };
    // @ts-expect-error and so does what is left of one
    const left: Ledger = rest;
    // @ts-expect-error what every ledger has cannot be taken out
    changePause(ledger, { holds: undefined });
    // @ts-expect-error another's member
    changePause(ledger, { workers: {} });
    assert.ok(spread !== left);
  });
});
