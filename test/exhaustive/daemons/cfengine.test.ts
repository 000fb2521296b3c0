// CFEngine with signed policy: the real cf-promises is the check, and the exit code of the real cf-agent, as the loader, is
// the verdict.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { defaultPath } from '../../../src/platform/process/run-command.js';
import { wholeSystem } from '../../kit/agent/whole-system.js';
import { expectAgreement } from '../../kit/assert/agreement.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { needs } from '../../kit/programs/real-programs.js';

const options = {
  timeout: 240_000,
  ...needs('cf-agent', 'cfengine3'),
  ...needs('cf-promises', 'cfengine3'),
  ...needs('bwrap', 'bubblewrap'),
};

/** cf-agent runs the cf-promises of its own work directory, and its failsafe policy without one. */
function workDirectory(dir: TempDir): string {
  const work = dir.join('cfengine');
  const program = defaultPath
    .split(':')
    .map((folder) => join(folder, 'cf-promises'))
    .find((path) => existsSync(path));
  mkdirSync(join(work, 'bin'), { recursive: true });
  chmodSync(work, 0o700);
  symlinkSync(program ?? '', join(work, 'bin/cf-promises'));
  return work;
}

/** `--eval-functions=no` prevents that the check executes the policy. The loader applies it, which is its purpose. */
function configFor(dir: TempDir): Record<string, unknown> {
  const parse = ['cf-promises', '--color=never', '--eval-functions=no', '-c', '-w', '{scratch}'];
  const run = ['cf-agent', '--color=never', '-K', '-w', workDirectory(dir)];
  const check = { name: 'policy parses', run: [...parse, '-f', '{bundle}/promises.cf'], timeout: '30s' };
  const load = {
    run: [...run, '-f', '{current}/cfengine/promises.cf'],
    timeout: '30s',
    sandbox: 'off',
    // Neither cf-promises nor the exit code of cf-agent reports a call of a missing bundle.
    reject: 'error: Did not find bundle',
  };
  return {
    sandbox: 'required',
    bundles: [{ name: 'cfengine', checks: [check] }],
    workers: [{ name: 'cf-agent', uses: ['cfengine'], load }],
  };
}

const main = `body common control { inputs => { "site.cf" }; bundlesequence => { "main" }; }
body agent control { abortclasses => { "stop" }; }
`;

interface Release {
  readonly version: number;
  readonly report: string;
  /** A class expression for which cf-agent exits with 6. */
  readonly stopIf?: string;
  /** Default: the semicolon that the syntax requires. */
  readonly end?: string;
}

function release({ version, report, stopIf = '!any', end = ';' }: Release): Record<string, string> {
  const site = `bundle agent main
{
  classes:
    "stop" expression => "${stopIf}";
  reports:
    "policy ${version} applied" report_to_file => "${report}"${end}
}
`;
  return { 'promises.cf': main, 'site.cf': site };
}

describe('a real CFEngine, checked and loaded by Writ', options, () => {
  it('applies each version once it is active, and neither what does not parse nor what aborts', async (t) => {
    using dir = tempDir();
    const report = dir.join('applied');
    const applied = (): string[] => readFileSync(report, 'utf8').trim().split('\n');
    await using writ = await wholeSystem(dir, { config: configFor(dir), pollEvery: '30d' });

    await t.test('applies version 1, then 2, whatever the modes of the source were', async () => {
      const source = writeTree(dir.join('loose'), release({ version: 1, report }));
      chmodSync(join(source, 'site.cf'), 0o666);
      await writ.publish(source);
      await writ.startAgent();
      const first = await writ.pull();
      assert.equal(first.exitCode, 0, JSON.stringify(first) + writ.agent().stderr());
      assert.deepEqual(applied(), ['policy 1 applied']);
      const { mode } = statSync(join(writ.policy, 'current/cfengine/site.cf'));
      assert.equal(mode & 0o777, 0o644, 'cf-agent refuses what others may write');
      await writ.publish(release({ version: 2, report }));
      const second = await writ.pull();
      await expectAgreement(writ, second, {
        exitCode: 0,
        outcome: 'activated',
        workers: { load: 'confirmed' },
      });
      assert.deepEqual(applied(), ['policy 1 applied', 'policy 2 applied']);
    });

    await t.test('rejects a syntax error with its file and line, and runs nothing', async () => {
      const current = writ.current();
      await writ.publish(release({ version: 3, report, end: '' }));
      const pull = await writ.pull();
      const refused = {
        exitCode: 3,
        outcome: 'rejected',
        code: 'CHECK_FAILED',
        workers: { load: 'confirmed' },
      };
      await expectAgreement(writ, pull, refused);
      assert.match(JSON.stringify(pull.json['problems']), /site\.cf:7:2: error: syntax error/);
      const shown = await runWritProcess(['pull', '--force', '--config', writ.config]);
      assert.equal(shown.exitCode, 3);
      assert.match(shown.stdout, /"policy parses".*site\.cf:7:2: error: syntax error/s, 'people see it too');
      assert.equal(writ.current(), current);
      assert.deepEqual(applied().slice(2), []);
    });

    await t.test('restores version 2 and applies it again when cf-agent exits with an error', async () => {
      const current = writ.current();
      await writ.publish(release({ version: 4, report, stopIf: 'any' }));
      const pull = await writ.pull();
      const back = {
        exitCode: 5,
        outcome: 'rolled-back',
        code: 'LOADER_FAILED',
        workers: { load: 'confirmed' },
      };
      await expectAgreement(writ, pull, back);
      assert.match(JSON.stringify(pull.json['problems']), /aborted on defined class 'stop'/);
      assert.equal(writ.current(), current);
      assert.deepEqual(applied().slice(2), ['policy 2 applied']);
    });

    await t.test(
      'rejects an empty file, and goes back when a bundle that is called is not there',
      async () => {
        const [current, before] = [writ.current(), applied().length];
        await writ.publish({ ...release({ version: 5, report }), 'promises.cf': '' });
        const refused = {
          exitCode: 3,
          outcome: 'rejected',
          code: 'CHECK_FAILED',
          workers: { load: 'confirmed' },
        };
        await expectAgreement(writ, await writ.pull(), refused);
        assert.equal(applied().length, before);
        const calls = `  files:\n    "${dir.join('edited')}" create => "true", edit_line => not_there("x");\n}\n`;
        const { 'site.cf': site = '', ...others } = release({ version: 6, report });
        await writ.publish({ ...others, 'site.cf': site.replace(/\}\n$/, calls) });
        const pull = await writ.pull();
        const back = {
          exitCode: 5,
          outcome: 'rolled-back',
          code: 'LOADER_FAILED',
          workers: { load: 'confirmed' },
        };
        await expectAgreement(writ, pull, back);
        assert.match(JSON.stringify(pull.json['problems']), /Did not find bundle 'not_there'/);
        assert.equal(writ.current(), current);
        assert.equal(applied().at(-1), 'policy 2 applied');
      },
    );
  });
});
