// The steps of the README with a Knot Resolver, and its keys of several people, command by command, by an unprivileged user.
// Ports are replaced by free ones, and `npx writ` is the program that npx would find in this folder.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { blocksOf, commandsIn, oneLine, sectionOf } from '../../kit/pages/page-commands.js';
import { pageShell } from '../../kit/pages/page-shell.js';
import { freePort } from '../../kit/programs/free-port.js';
import { needs } from '../../kit/programs/real-programs.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const page = readFileSync(join(projectRoot, 'README.md'), 'utf8');
const withResolver = {
  ...needs('dig', 'bind9-dnsutils'),
  ...needs('kresd', 'knot-resolver'),
  ...needs('bwrap', 'bubblewrap'),
};
/** Runs it until it answers, then sends the signal of Ctrl-C. */
const agent = 'writ agent --config $W/agent.yaml';
const agentUntilInterrupted = `${agent} & until test -S $W/run/agent.sock; do sleep 0.1; done; kill -INT $!; wait $!`;

describe('README.md', () => {
  it('leads through ten minutes with a Knot Resolver', withResolver, async () => {
    using dir = tempDir();
    const [http, dns] = [String(await freePort()), String(await freePort())];
    await using shell = pageShell(dir, {
      user: 'nobody',
      cwd: projectRoot,
      replacements: {
        'npm ci': 'true',
        [`npx ${agent}`]: agentUntilInterrupted,
        'npx writ': 'writ',
        '8470': http,
        '5470': dns,
      },
      settles: [
        [/ serve /, `(exec 3<>/dev/tcp/127.0.0.1/${http}) 2>/dev/null`],
        [/kresd -n -c .*&$/, 'test -S $W/kresd/control/1'],
      ],
    });
    await shell.play(sectionOf(page, 'Ten minutes with a Knot Resolver'));
  });

  it('changes the holder of a root key', async () => {
    using dir = tempDir();
    await using shell = pageShell(dir, {
      user: 'nobody',
      cwd: projectRoot,
      replacements: { 'npx writ': 'writ' },
    });
    const commands = blocksOf(sectionOf(page, 'Keys of several people')).flatMap(commandsIn);
    for (const { text, exitCode, shows } of commands) {
      const run = await shell.type(text);
      assert.equal(run.exitCode, exitCode, `$ ${text}\n${run.output}`);
      assert.ok(oneLine(run.output).includes(shows), `"${shows}" is not in\n${run.output}`);
      // Passed on by voice, and typed at the prompt of the program.
      const code = /Code (\S+): compare it/.exec(run.output)?.[1];
      if (code !== undefined)
        await shell.type(`export WRIT_SIGN_CONFIRM=${code} WRIT_ROOT_COMMIT_CONFIRM=${code}`);
    }
    const roles = await shell.type('writ repo status --keys $K/keys --repository $K/repo');
    assert.match(roles.output, /root +2 .* anna, ben, dora/);
  });
});

describe('a page with tested commands', () => {
  it('fails for a command with another exit code or output than on the page', async () => {
    using dir = tempDir();
    await using shell = pageShell(dir, { user: 'nobody' });
    const block = (text: string): string => `\`\`\`sh\n${text}\n\`\`\`\n`;
    await shell.play(block('x=1\necho $x    # 1\nfalse    # exit 1'));
    await assert.rejects(shell.play(block('echo one    # two')), /"two" is not in/);
    await assert.rejects(shell.play(block('(exit 3)')), /3/);
    await assert.rejects(shell.play('no block'), /no command/);
  });
});
