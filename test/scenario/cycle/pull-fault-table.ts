// Faults of a `writ pull`, as rows: a change of the repository, the server, the host or its mounts, and the expected code and
// exit code. Runs a row with --json and as a person does.
import assert from 'node:assert/strict';
import { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../../src/core/errors.js';
import { copyHost, type InstalledHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { assertFailureText, type Places, standingPolicy } from '../../kit/assert/standing-policy.js';
import { jsonOf, type WritRun } from '../../kit/cli/run-writ.js';
import { type Bend, serveDirectory } from '../../kit/net/serve-repository.js';

export interface PullFault {
  readonly name: string;
  readonly code: ErrorCode;
  readonly exit: 1 | 2 | 7;
  /** The command could not begin: then it is an error on stderr, else a result on stdout. */
  readonly begins?: 'no';
  /** Both runs at once: each would wait for ten seconds. */
  readonly together?: 'yes';
  /** @returns the resource to dispose after the row */
  readonly harm?: (host: InstalledHost) => unknown;
  /** Serves the repository by http with these faults. */
  readonly server?: Bend;
  /** Shell lines that change the mounts of the command alone; the state is `$STATE`, a copy of it `$KEPT`. */
  readonly mounts?: string;
}

/** One test a row, each on a copy of the installed host, which is asked for when the test runs. */
export function pullFaultTable(
  title: string,
  faults: readonly PullFault[],
  installed: () => InstalledHost,
): void {
  describe(title, longCase, () => {
    for (const fault of faults) it(`${fault.code}: ${fault.name}`, () => holdsAgainst(fault, installed()));
  });
}

async function holdsAgainst(fault: PullFault, installed: InstalledHost): Promise<void> {
  using host = copyHost(installed);
  await using server = await serveDirectory(host.repository, fault.server ?? (() => false));
  if (fault.server !== undefined) host.configure({ repository: server.url });
  await using _harm = undoing(await fault.harm?.(host));
  const stands = standingPolicy(host.paths, fault.mounts === undefined ? host.paths : placesAfter(host));
  const pull = (flag: string): Promise<WritRun> => {
    if (fault.mounts !== undefined) return host.writUnder(privately(host, fault.mounts), 'pull', flag);
    // Two runs at once are two processes, because the lock is one of processes.
    return fault.together === 'yes' ? host.writUnder([], 'pull', flag) : host.writ('pull', flag);
  };
  const asScript = () => pull('--json');
  const asPerson = () => pull('-q');
  const both = fault.together === 'yes' ? [asScript(), asPerson()] : [await asScript(), await asPerson()];
  const [script, person] = await Promise.all(both);
  assert.ok(script && person);
  assertScript(script, fault);
  assertPerson(person, fault);
  stands();
}

function assertScript(run: WritRun, fault: PullFault): void {
  const { type, code, exitCode, changed, hint } = jsonOf(run);
  const expected = ['pull.result', fault.code, fault.exit, false, 'string'];
  assert.deepEqual([type, code, exitCode, changed, typeof hint], expected, run.stdout);
  assert.deepEqual([run.exitCode, run.stderr], [fault.exit, '']);
}

function assertPerson({ exitCode, stdout, stderr }: WritRun, { code, exit, begins }: PullFault): void {
  assert.equal(exitCode, exit);
  const [answer, other] = begins === 'no' ? [stderr, stdout] : [stdout, stderr];
  assert.equal(other, '');
  const outcome = begins === 'no' ? `error[${code}]` : 'FAILED';
  assertFailureText(answer, { outcome, code, next: begins === 'no' ? 0 : 1 });
}

function undoing(child: unknown): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: async () => {
      if (!(child instanceof ChildProcess)) return;
      const ended = once(child, 'close');
      child.kill();
      await ended;
    },
  };
}

/** Runs writ with private mounts, and copies the state out of them after its end. */
function privately(host: InstalledHost, mounts: string): string[] {
  const [kept, later] = [host.dir.join('kept'), host.dir.join('later')];
  const script = `set -e; rm -rf "$KEPT" "$LATER"; cp -a "$STATE" "$KEPT"; ${mounts}
    code=0; "$@" || code=$?; cp -a "$STATE" "$LATER"; exit $code`;
  const env = ['env', `STATE=${host.paths.state}`, `KEPT=${kept}`, `LATER=${later}`];
  return [...env, 'unshare', '-m', 'sh', '-c', script, 'sh'];
}

function placesAfter(host: InstalledHost): Places {
  const later = host.dir.join('later');
  return {
    policy: join(later, 'policy'),
    staging: join(later, 'staging'),
    journal: join(later, 'journal.json'),
  };
}
