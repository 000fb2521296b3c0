// The ends of commands in the real bubblewrap, and their leftovers: deadlines, bounds, and failures of the sandbox.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createSandbox } from '../../../src/agent/hooks/sandbox.js';
import { defaultHookSandbox } from '../../../src/core/config/hook-sandbox.js';
import { defaultPath } from '../../../src/platform/process/run-command.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { confinedHost, judge, judged, runInSandbox, shellCheck } from '../../kit/host/confined-host.js';
import { needs } from '../../kit/programs/real-programs.js';
import { scriptedDriver } from '../../kit/workers/scripted-driver.js';

const options = { timeout: 120_000, ...needs('bwrap', 'bubblewrap') };
const isRoot = process.getuid?.() === 0;
const log = silentLog();

/** @returns the processes of this host with this argument */
function running(argument: string): number {
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(argument);
      } catch {
        return false;
      }
    }).length;
}

let times = 0;

/** A duration for sleep that no other process uses, to find the process. */
function ownTime(): string {
  times += 1;
  return `98${process.pid}.${times}`;
}

describe('a command in the sandbox ends', options, () => {
  it('at its deadline, with every process that it has started', async () => {
    const time = ownTime();
    using test = confinedHost(
      shellCheck(`(setsid sleep ${time} &); sleep ${time} & sleep ${time}`, {}, { timeoutMs: 1500 }),
    );
    const { outcome, code, reason } = await judge(test);
    assert.deepEqual([outcome, code, reason], ['failed', 'CHECK_BROKEN', 'timed out']);
    await until(() => running(time) === 0);
  });

  it('with its own verdict, and leaves no daemon behind', async () => {
    const time = ownTime();
    using test = confinedHost(shellCheck(`(setsid nohup sleep ${time} >/dev/null 2>&1 &)`));
    assert.equal((await judge(test)).outcome, 'activated');
    await until(() => running(time) === 0);
  });

  it('without a change of the candidate, whatever it tried', async () => {
    using test = confinedHost(
      shellCheck('echo x >> "$2/policy.txt"; chmod 777 "$2/policy.txt"; rm -rf "$2" "$1" "$3"; true'),
    );
    const { outcome } = await judge(test);
    assert.equal(outcome, 'activated');
    assert.equal(test.read('access/policy.txt'), 'version 1\n');
  });

  it('by a signal, as killed and not as refusing', async () => {
    using test = confinedHost(shellCheck('kill -SEGV $$'));
    const { code, reason } = await judge(test);
    assert.deepEqual([code, reason], ['CHECK_BROKEN', 'killed by SIGSEGV']);
  });

  it('without a verdict when its program is missing, with a hint when the sandbox hides it', async () => {
    using test = confinedHost({ ...shellCheck(''), run: ['/home/someone/check'] });
    const { code, hint } = await judge(test);
    assert.equal(code, 'CHECK_BROKEN');
    assert.match(hint, /hides \/home\/someone\/check/);
    const { problem } = (await test.pull()).bundles[0] ?? assert.fail();
    assert.match(problem?.hint ?? '', /hides \/home\/someone\/check/);
    using dir = tempDir();
    fs.writeFileSync(dir.join('main.conf'), 'x');
    const refused = await runInSandbox(`cat ${dir.join('main.conf')}`);
    assert.equal(refused.code, 'CHECK_FAILED');
    assert.ok(refused.hint.includes(dir.join('main.conf')), refused.hint);
    const shown = await runInSandbox(`cat ${dir.join('main.conf')}`, { binds: [dir.join('main.conf')] });
    assert.equal(shown.text, 'x');
  });

  it('when it exceeds its memory', async () => {
    const script = 'head -c 300000000 /dev/zero | tail -c 300000000 | wc -c';
    assert.match((await runInSandbox(script, { maxMemoryBytes: 60e6 })).text, /memory exhausted/);
    assert.equal((await runInSandbox(script)).text, '300000000');
  });

  it('as killed, and not as refusing, when its control group ran out of memory', async () => {
    // A stub, because tests have no delegated control group. This case tests only the effect of its result.
    const ended: string[] = [];
    const open = (bounds: object) => ({
      enter: ['/usr/bin/env'],
      close: async () => {
        ended.push(JSON.stringify(bounds));
        return { outOfMemory: 'yes' as const };
      },
    });
    const sandbox = createSandbox({ mode: 'required', log, findGroups: async () => ({ open }) });
    using test = confinedHost(shellCheck('exit 1', { maxMemoryBytes: 5e6, maxProcesses: 9 }));
    Object.assign(test.host, { sandbox });
    const { code, reason } = await judge(test);
    assert.deepEqual([code, reason], ['CHECK_BROKEN', 'killed by SIGKILL']);
    assert.deepEqual(ended, ['{"maxMemoryBytes":5000000,"maxProcesses":9}']);
    assert.equal(sandbox.status().memory, 'each-command');
  });

  it('when it exceeds its number of processes, whatever other processes its user has', async () => {
    const script = 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 5 & done; echo all';
    assert.match((await runInSandbox(script, { maxProcesses: 8 })).text, /Cannot fork|Resource temporarily/);
    assert.equal((await runInSandbox(script)).text, 'all');
  });
});

describe('a failure of the sandbox itself', options, () => {
  it('is no verdict, and not remembered', async () => {
    using test = confinedHost(shellCheck('true', { binds: ['/nonexistent/socket'] }));
    const { outcome, code, reason } = await judge(test);
    assert.deepEqual([outcome, code], ['failed', 'SANDBOX_BROKEN']);
    assert.match(reason, /\/nonexistent\/socket/);
    assert.deepEqual(test.host.refusals.read().refusals, []);
  });

  it('is reported for a user that does not exist, or that only root could switch to', async () => {
    const { code, reason } = await runInSandbox('true', { user: isRoot ? 'no-such-user' : 'daemon' });
    assert.equal(code, 'SANDBOX_BROKEN');
    assert.match(reason, /no-such-user|daemon/);
  });

  it('defers a release while the required sandbox is missing, and not once it is installed', async () => {
    using test = confinedHost(shellCheck('true'));
    const sandbox = createSandbox({ mode: 'required', log, searchPath: '/nonexistent' });
    Object.assign(test.host, { sandbox });
    const { outcome, code } = await judge(test);
    assert.deepEqual([outcome, code], ['failed', 'SANDBOX_MISSING']);
    assert.equal(sandbox.status().state, 'missing');
    Object.assign(test.host, { sandbox: createSandbox({ mode: 'required', log, searchPath: defaultPath }) });
    assert.equal((await judged(test)).outcome, 'activated');
  });

  it('lets commands run as the agent if the sandbox is optional and missing', async () => {
    using dir = tempDir();
    const found = dir.join('found');
    using test = confinedHost(shellCheck(`id -u > ${found}; pwd >> ${found}`), {
      config: { sandbox: 'auto' },
    });
    const sandbox = createSandbox({ mode: 'auto', log, searchPath: '/nonexistent' });
    Object.assign(test.host, { sandbox });
    assert.equal((await judge(test)).outcome, 'activated');
    assert.equal(fs.readFileSync(found, 'utf8').split('\n')[0], String(process.getuid?.()));
    assert.equal(sandbox.status().state, 'missing');
  });
});

describe('the output of a check', options, () => {
  it('refuses if `reject` matches, whatever the exit code is', async () => {
    const check = shellCheck('echo fine; echo "WARN empty ACL here"; exit 0', {}, { reject: 'empty ACL' });
    using test = confinedHost(check);
    const { outcome, code, reason } = await judge(test);
    assert.deepEqual([outcome, code], ['rejected', 'CHECK_FAILED']);
    assert.match(reason, /WARN empty ACL here/);
    using other = confinedHost({ ...check, reject: '^empty' });
    assert.equal((await judge(other)).outcome, 'activated');
  });

  it('delays nothing if the pattern backtracks without end', async () => {
    const script = 'head -c 50000 /dev/zero | tr "\\0" a; exit 0';
    using test = confinedHost(shellCheck(script, {}, { reject: '^(a+)+$[^a]' }));
    const { outcome, code } = await judge(test);
    assert.deepEqual([outcome, code], ['failed', 'CHECK_BROKEN']);
  });
});

describe('a canary', options, () => {
  const hook = (script: string) => ({
    run: ['sh', '-c', script, 'sh', '{candidate}', '{scratch}'] as const,
    timeoutMs: 60_000,
  });
  // The candidate is at the active path, and only the scratch directory is writable.
  const hasCandidate =
    '[ "$(cat "$1/../../current/access/policy.txt")" = "version 1" ] && ! touch "$1/x" 2>/dev/null';

  it('that is a command finds the candidate at the active path', async () => {
    const canary = {
      kind: 'run' as const,
      hook: hook(`${hasCandidate} && ls "$1/../../current/access" && exit 3`),
    };
    using test = confinedHost(shellCheck('true'), { groups: { w: { config: { canary } } } });
    const { code, text } = await judge(test);
    assert.deepEqual([code, text], ['CANARY_FAILED', 'policy.txt']);
  });

  it('that is started is reached by its probe on a socket in their scratch directory, and is ended afterwards', async () => {
    const time = ownTime();
    const serve = `require("net").createServer((s) => s.end("yes")).listen(process.argv[1])`;
    const ask = `require("net").connect(process.argv[1]).on("error", () => process.exit(1)).on("data", () => process.exit(0))`;
    const node = process.execPath;
    const canary = {
      kind: 'start' as const,
      start: hook(`${hasCandidate} || exit 9; sleep ${time} & exec ${node} -e '${serve}' "$2/sock"`),
      probe: hook(`exec ${node} -e '${ask}' "$2/sock"`),
      timeoutMs: 60_000,
    };
    const box = { ...defaultHookSandbox, binds: /^\/(root|home)\//.test(node) ? [node] : [] };
    const config = {
      canary: { ...canary, start: { ...canary.start, box }, probe: { ...canary.probe, box } },
    };
    using test = confinedHost(shellCheck('true'), { groups: { w: { config } } });
    const { outcome, reason, text } = await judge(test);
    assert.equal(outcome, 'activated', reason + text);
    await until(() => running(time) === 0);
  });
});

describe('a loader and a probe', options, () => {
  const hook = (script: string, more: object = {}) => ({
    run: ['sh', '-c', script, 'sh', '{current}', '{scratch}'] as const,
    timeoutMs: 60_000,
    ...more,
  });

  it('find the active policy behind the link, and nothing writable', async () => {
    using dir = tempDir();
    const left = dir.join('left');
    const script = `[ "$(cat "$1/../../current/access/policy.txt")" = "version 1" ] || exit 9
      [ "$(realpath "$1/../../current")" = "$(realpath "$1")" ] || exit 8
      touch ${left} "$1/x" "$1/../../x" 2>/dev/null && exit 7; touch "$2/x"`;
    const driver = scriptedDriver({});
    const config = { load: hook(script), probe: { ...hook(script), retry: 0 } };
    using test = confinedHost(shellCheck('true'), { groups: { w: { driver, config } } });
    const { outcome } = await judge(test);
    assert.equal(outcome, 'activated', JSON.stringify(await test.pull()));
    assert.equal(fs.existsSync(left), false);
  });

  it('act on the host if the configuration permits it', async () => {
    using dir = tempDir();
    const left = dir.join('left');
    const config = { load: hook(`id -u > ${left}`, { sandbox: 'off' }) };
    using test = confinedHost(shellCheck('true'), { groups: { w: { config } } });
    assert.equal((await judge(test)).outcome, 'activated');
    assert.equal(fs.readFileSync(left, 'utf8').trim(), String(process.getuid?.()));
  });

  it('restore the previous generation, without a verdict, if they cannot be confined', async () => {
    const load = hook('true', { box: { ...defaultHookSandbox, binds: ['/nonexistent/x'] } });
    using test = confinedHost(shellCheck('true'), { groups: { w: { config: { load } } } });
    const { outcome, code } = await judge(test);
    assert.deepEqual([outcome, code], ['failed', 'SANDBOX_BROKEN']);
    assert.equal(fs.existsSync(test.host.paths.current), false);
    assert.deepEqual(test.host.refusals.read().refusals, []);
  });
});

describe('a parser that executes its input', { ...options, ...needs('cf-promises', 'cfengine3') }, () => {
  it('finds nothing writable and no network', async () => {
    using dir = tempDir();
    const server = createServer();
    let called = 0;
    server.on('connection', (socket) => {
      called += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const left = dir.join('left');
    fs.chmodSync(dir.path, 0o777);
    const script = `#!/bin/bash
echo ran > "$WRIT_SCRATCH_DIR/ran"
for d in / /tmp /var/tmp /run /home /etc /dev/shm ${dir.path}; do echo evil > $d/left-by-policy; done
echo evil > ${left}
exec 3<>/dev/tcp/127.0.0.1/${port}
`;
    const policy = `body common control { bundlesequence => { "main" }; }
bundle agent main { vars: "x" string => execresult("/bin/bash $(sys.policy_entry_dirname)/evil.sh", "noshell"); }
`;
    // -w: its state is in the scratch directory.
    const check = shellCheck('cf-promises -w "$4" -f "$2/promises.cf" 2>&1; cat "$4/ran"; exit 1');
    using test = confinedHost(check);
    try {
      await test.publish('access', { 'promises.cf': policy, 'evil.sh': script }, { serial: 1 });
      const { code, text } = await judged(test);
      assert.equal(code, 'CHECK_FAILED');
      assert.match(text, /ran$/, 'it was executed');
      assert.equal(fs.existsSync(left), false);
      for (const place of ['/', '/tmp', '/var/tmp', '/run', '/home', '/etc', '/dev/shm']) {
        assert.equal(fs.existsSync(join(place, 'left-by-policy')), false, place);
      }
      assert.equal(called, 0);
    } finally {
      server.close();
    }
  });
});
