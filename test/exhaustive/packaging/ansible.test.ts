// packaging/ansible: the real ansible-core runs the role on this machine, into its own directory. Writ is installed already,
// and there is no systemd: the tasks that install and start it do not run here.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const roles = join(projectRoot, 'packaging/ansible/roles');

interface Played {
  readonly exitCode: number | null;
  readonly changed: number;
  /** The names of the tasks with a change. */
  readonly tasks: readonly string[];
  readonly text: string;
}

async function ansible(
  dir: TempDir,
  ...args: readonly string[]
): Promise<{ exitCode: number | null; text: string }> {
  const env = {
    PATH: `${dir.join('bin')}:${dirname(process.execPath)}:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: dir.path,
    LC_ALL: 'C.UTF-8',
    ANSIBLE_ROLES_PATH: roles,
    ANSIBLE_NOCOLOR: '1',
    ANSIBLE_LOCALHOST_WARNING: 'False',
    ANSIBLE_LOCAL_TEMP: dir.join('tmp'),
    ANSIBLE_REMOTE_TEMP: dir.join('tmp'),
  };
  const argv = ['/usr/bin/ansible-playbook', '-i', 'localhost,', '-c', 'local', ...args] as const;
  const ended = await runCommand({ argv: [...argv], env, timeoutMs: 120_000, maxOutputBytes: 4_000_000 });
  if (ended.kind === 'not-started') throw new Error(ended.reason);
  return {
    exitCode: ended.kind === 'exited' ? ended.exitCode : null,
    text: `${ended.stdout}${ended.stderr}`,
  };
}

async function play(dir: TempDir): Promise<Played> {
  const { exitCode, text } = await ansible(dir, dir.join('play.json'));
  const tasks = [...text.matchAll(/^TASK \[writ : (.*)\] \*+\n(?:.*\n)*?(?=\n)/gm)]
    .filter(([block]) => /^changed: \[localhost\]/m.test(block))
    .map(([, name = '']) => name);
  return { exitCode, changed: Number(/ changed=(\d+) /.exec(text)?.[1]), tasks, text };
}

describe('the role of Ansible', { timeout: 240_000, ...needs('ansible-playbook', 'ansible-core') }, () => {
  it('makes a host, changes nothing the second time, and reports a policy as a change', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    await repository.publish({ 'block.rpz': 'one\n' });
    fs.mkdirSync(dir.join('bin'));
    const writ = `#!/bin/sh\nexec "${process.execPath}" "${writProgram}" "$@"\n`;
    fs.writeFileSync(dir.join('bin/writ'), writ, { mode: 0o755 });
    const config = {
      repository: repository.url,
      state: dir.join('host/state'),
      run: dir.join('host/run'),
      bundles: [{ name: 'dns-edge' }],
    };
    const variables = (writ_config: Readonly<Record<string, unknown>>): void =>
      fs.writeFileSync(
        dir.join('play.json'),
        JSON.stringify([
          {
            ...{ hosts: 'localhost', gather_facts: false, roles: ['writ'] },
            vars: {
              writ_prefix: dir.join('host'),
              writ_root: repository.rootPath,
              writ_service: false,
              writ_config,
            },
          },
        ]),
      );
    const agentYaml = dir.join('host/etc/writ/agent.yaml');
    fs.mkdirSync(dir.join('host'));
    variables(config);

    const first = await play(dir);
    assert.equal(first.exitCode, 0, first.text);
    assert.deepEqual(first.tasks, [
      'Make the directory of the configuration',
      'Put the root in place',
      'Write agent.yaml, if it passes the check',
      'Pull',
    ]);
    const policy = dir.join('host/state/policy/current/dns-edge/block.rpz');
    assert.equal(fs.readFileSync(policy, 'utf8'), 'one\n');

    const second = await play(dir);
    assert.deepEqual([second.exitCode, second.changed], [0, 0], second.text);

    await repository.publish({ 'block.rpz': 'two\n' });
    const third = await play(dir);
    assert.deepEqual([third.exitCode, third.tasks], [0, ['Pull']], third.text);
    assert.equal(fs.readFileSync(policy, 'utf8'), 'two\n');

    const good = fs.readFileSync(agentYaml, 'utf8');
    variables({ ...config, repositry: 'x' });
    const refused = await play(dir);
    assert.notEqual(refused.exitCode, 0);
    assert.match(refused.text, /unknown key .{0,4}repositry/);
    assert.equal(fs.readFileSync(agentYaml, 'utf8'), good);
  });

  it('has no mistake that ansible finds by reading, also in what is not run here', async () => {
    using dir = tempDir();
    const vars = { writ_config: {}, writ_root: 'x', writ_deb: 'x.deb', writ_tarball: 'x.tgz' };
    const text = JSON.stringify([{ hosts: 'localhost', roles: ['writ'], vars }]);
    fs.writeFileSync(dir.join('play.json'), text);
    const { exitCode, text: output } = await ansible(dir, '--syntax-check', dir.join('play.json'));
    assert.equal(exitCode, 0, output);
  });
});
