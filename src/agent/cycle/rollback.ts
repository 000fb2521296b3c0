// `writ rollback`: back to an older generation by the same swap, loader and reset, without the network. What is
// left gets a hold, or the next poll would bring it back.
import type { CycleEventLine, Problem } from '../../core/cycle/cycle-report.js';
import { toWritError } from '../../core/errors.js';
import { changedPaths, concernsGroup } from '../../core/release/affected-groups.js';
import { performMove } from '../activation/activate.js';
import type { Move } from '../activation/move.js';
import { type ActivePolicy, readActivePolicy } from '../generations/generation-contents.js';
import { chooseTarget } from '../generations/rollback-target.js';
import { touchTrees } from '../generations/touch-trees.js';
import { type CycleEnd, emptyFindings, finishCycle, type MoveResult } from '../job/cycle-result.js';
import { openStory } from '../job/progress.js';
import { openStagingArea } from '../job/staging-area.js';
import { dueGroups } from '../notify/worker-ledger.js';
import type { Host } from '../state/host.js';
import type { Hold, Ledger } from '../state/ledger.js';

export interface RollbackRequest {
  readonly cycle: string;
  /** Left out: the previous generation. */
  readonly generation?: number;
  /** `yes`: also to a release that was withdrawn; `no` by default. */
  readonly force?: 'yes' | 'no';
  readonly by: string;
  readonly reason: string;
  readonly signal: AbortSignal;
  readonly onEvent?: (event: CycleEventLine) => void;
}

/** Rolls back. Never rejects: NO_PREVIOUS, RELEASE_UNTRUSTED, RELEASE_WITHDRAWN, STATE_DAMAGED and what workers said are in the result. */
export async function rollBack(host: Host, request: RollbackRequest): Promise<CycleEnd> {
  const story = openStory({ ...request, trigger: 'rollback', clock: host.clock, firstStep: 'swap' });
  const findings = emptyFindings();
  const area = openStagingArea(host.paths, host.durable, story.cycle);
  try {
    const active = readActivePolicy(host.paths);
    findings.fromGeneration = active?.generation.number;
    const target = await chooseTarget(host, active, {
      force: request.force ?? 'no',
      ...(request.generation === undefined ? {} : { generation: request.generation }),
    });
    await touchTrees(host, { comingBack: target.generation.number, inUse: active?.generation.number });
    const move = planRollback(host, { active, target, request, staging: area.path() });
    const result = await performMove(host, story, move);
    findings.moves.push(result);
    noteBundles(findings, { active, target, outcome: result.outcome, problem: result.problems[0] });
  } catch (error) {
    findings.error = toWritError(error);
  } finally {
    area.remove(host.log);
  }
  return { result: finishCycle(host, story, findings, 'rollback.result'), story };
}

interface RollbackPlan {
  readonly active: ActivePolicy | undefined;
  readonly target: ActivePolicy;
  readonly request: RollbackRequest;
  readonly staging: string;
}

function planRollback(host: Host, plan: RollbackPlan): Move {
  const { active, target, request } = plan;
  const changed = changedPaths(active?.bundles ?? new Map(), target.bundles);
  const due = dueGroups(host.ledger.read());
  const from = active && { generation: active.generation.number, path: active.generation.path };
  return {
    kind: 'rollback',
    ...(from ? { from } : {}),
    to: { generation: target.generation.number, path: target.generation.path },
    // Who is due may hold what is left now, whatever this move changes.
    groups: host.groups.filter(({ config }) => concernsGroup(config, changed) || due.has(config.name)),
    releases: [],
    staging: plan.staging,
    signal: request.signal,
    ledger: (ledger) => withHolds(host, ledger, plan),
  };
}

function withHolds(host: Host, ledger: Ledger, plan: RollbackPlan): Ledger {
  const left = [...(plan.active?.bundles.values() ?? [])].filter(({ record }) => {
    const kept = plan.target.bundles.get(record.release.bundle)?.record.release;
    return kept?.manifest.digest !== record.release.manifest.digest || kept.serial !== record.release.serial;
  });
  const holds = left.map(({ record }): Hold => {
    const { bundle, serial, manifest } = record.release;
    const { by, reason } = plan.request;
    return { bundle, serial, manifestDigest: manifest.digest, by, reason, atMs: host.clock.nowMs() };
  });
  const others = ledger.holds.filter(
    (one) => !holds.some((hold) => hold.bundle === one.bundle && hold.serial >= one.serial),
  );
  return { ...ledger, holds: [...others, ...holds] };
}

function noteBundles(
  findings: ReturnType<typeof emptyFindings>,
  done: {
    active: ActivePolicy | undefined;
    target: ActivePolicy;
    outcome: MoveResult['outcome'];
    problem: Problem | undefined;
  },
): void {
  for (const [bundle, { record }] of done.target.bundles) {
    const { channel, serial, revision } = record.release;
    const fromSerial = done.active?.bundles.get(bundle)?.record.release.serial;
    findings.bundles.set(bundle, {
      bundle,
      channel,
      outcome: fromSerial === serial ? 'unchanged' : done.outcome,
      ...(fromSerial === undefined ? {} : { fromSerial }),
      toSerial: serial,
      revision,
      ...(done.problem && done.outcome !== 'degraded' ? { problem: done.problem } : {}),
    });
  }
}
