// The rules that hold after each event, and the recovery that must succeed once every fault has ended. Owns the checks.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { type FoundTree, readActivePolicy } from './read-active-policy.js';
import { bundles } from './simulated-publisher.js';
import { judgeText, type World } from './world.js';

export interface Rules {
  /** Checks the active policy after an event. */
  checkReaders(): void;
  /** Ends every fault: then one pull must activate the newest release, whatever happened before. */
  recover(): Promise<void>;
}

const by = 'life';
/**
 * The longest time between two activations of a bundle with releases that did not settle (docs/adr/0048-bake-time.md).
 */
const maxGapMs = 3_600_000;
/** One wait for the bake time of the active release, and one for the gap after restores of each bundle. */
const maxGapWaits = 3;

export function hostRules(world: World): Rules {
  const serials = new Map<string, number>();
  return {
    checkReaders: () => {
      const canLowerSerial = world.isPolicyHarmed || world.agentEnds.splice(0).some(activatesOlderRelease);
      for (const tree of activePolicy(world) ?? []) {
        judgeTree(world, tree);
        const before = serials.get(tree.bundle) ?? 0;
        if (tree.serial < before && !canLowerSerial)
          world.log.violate(`${tree.bundle} was lowered from ${before} to ${tree.serial}`);
        serials.set(tree.bundle, tree.serial);
      }
    },
    recover: () => recover(world),
  };
}

/** Whether a job may activate an older release: no other result may lower a serial. */
function activatesOlderRelease({ result: { type, trigger, outcome } }: CycleEnd): boolean {
  return (
    type !== 'pull.result' ||
    trigger === 'recovery' ||
    trigger === 'repair' ||
    outcome === 'rolled-back' ||
    outcome === 'blocked'
  );
}

/** @returns undefined while the policy is harmed by hand, because a reader may find anything then */
function activePolicy({ places, log, isPolicyHarmed }: World): FoundTree[] | undefined {
  if (isPolicyHarmed) return undefined;
  try {
    log.count('reads of the policy');
    return readActivePolicy(places.paths);
  } catch (error) {
    log.violate(`a reader finds no policy: ${error}`);
    return undefined;
  }
}

function judgeTree({ log, publisher }: World, { bundle, serial, digest }: FoundTree): void {
  const kind = publisher.kindOf(bundle, digest);
  if (kind === undefined) log.violate(`${bundle} ${serial} is no published release`);
  else if (kind === 'refused') log.violate(`${bundle} ${serial} is active, which a check refuses`);
}

async function recover(world: World): Promise<void> {
  const { log, publisher, drive, places } = world;
  log.event('calm');
  endFaults(world);
  world.configure();
  await startUntilRunning(world);
  world.agent().reload();
  for (const worker of world.workers) worker.connect();
  await drive.pass(10_000);
  for (const bundle of bundles) publisher.publish(bundle, 'good');
  await world.ask({ type: 'resume', by });
  await world.ask({ type: 'verify', repair: true, by });
  if (!(await pullsNewest(world))) await repairByHand(world);
  if (fs.existsSync(places.paths.history)) judgeText(log, 'the history', endOfHistory(world));
  world.isPolicyHarmed = false;
  log.count('calms');
}

function endFaults({ server, clock, publisher, workers, agent }: World): void {
  server.fault = undefined;
  server.wrongByMs = 0;
  clock.setWrongBy(0);
  publisher.setWrongBy(0);
  agent().disk.heal();
  for (const worker of workers) worker.behaviour = 'right';
}

/**
 * Starts the agent and, when the start fails, removes the harmed entry that the error names. An error that names no
 * harmed entry is a violation.
 */
async function startUntilRunning(world: World): Promise<void> {
  for (let tries = 0; world.agent().state() !== 'runs' && tries < 5; tries++) {
    const error = await world.start();
    if (error !== undefined && !removeNamed(world, `${(error as Error).stack} ${JSON.stringify(error)}`)) {
      world.log.violate(`an agent does not start, and no harm is named: ${error} ${JSON.stringify(error)}`);
      return;
    }
  }
}

async function pullsNewest(world: World): Promise<boolean> {
  let result = await pull(world);
  for (let waits = 0; waits < maxGapWaits && !isNewest(world); waits++) {
    if (!(await waitsForGap(world, result))) break;
    result = await pull(world);
  }
  return result !== undefined && isNewest(world);
}

/** Waits for the end of the gap that delays a release. @returns false when no release was delayed */
async function waitsForGap({ clock, drive, log }: World, result: CycleResult | undefined): Promise<boolean> {
  const problems = result?.bundles?.flatMap(({ problem }) => problem ?? []) ?? [];
  const agentEnds = problems.flatMap(({ code, facts }) =>
    code === 'BAKE_GAP' ? Number(facts?.['untilMs']) : [],
  );
  if (agentEnds.length === 0) return false;
  const waitMs = Math.max(...agentEnds) - clock.nowMs();
  if (!(waitMs <= maxGapMs)) log.violate(`a release waits ${waitMs} ms, longer than any gap`);
  log.count('gaps between releases');
  await drive.pass(Math.min(Math.max(0, waitMs), maxGapMs) + 1);
  return true;
}

async function pull(world: World): Promise<CycleResult | undefined> {
  const answer = await world.ask({ type: 'pull', force: false, by });
  world.log.event(`  pull: ${JSON.stringify(answer)?.slice(0, 900)}`);
  return answer as CycleResult | undefined;
}

function isNewest({ places, publisher }: World): boolean {
  try {
    const active = readActivePolicy(places.paths) ?? [];
    const isRight = ({ bundle, serial, digest }: FoundTree): boolean =>
      bundles.some((name) => name === bundle && publisher.serial(name) === serial) &&
      publisher.kindOf(bundle, digest) === 'good';
    return active.length === bundles.length && active.every(isRight);
  } catch {
    return false;
  }
}

/** Recovers as an operator does: moves away the entries that the pull's error names, and pulls again. */
async function repairByHand(world: World): Promise<void> {
  const { log } = world;
  for (let tries = 0; tries < 6; tries++) {
    const answer = await pull(world);
    if (isNewest(world)) return;
    if (!removeNamed(world, JSON.stringify(answer) ?? '')) break;
    await world.end();
    await startUntilRunning(world);
    for (const worker of world.workers) worker.connect();
  }
  if (await pullsNewest(world)) return;
  log.violate('stuck: everything is right, and the newest is not active');
}

/** Removes each harmed entry that `text` names, and puts back a root that it requires. @returns whether it named any */
function removeNamed({ harmed, log, places, publisher }: World, text: string): boolean {
  const [, root] = /copy the configured root to (trust\/roots\/\d+\.root\.json)/.exec(text) ?? [];
  if (root !== undefined) {
    const path = join(places.paths.state, root);
    log.event(`  by hand: ${path} is restored`);
    fs.mkdirSync(dirname(path), { recursive: true });
    fs.writeFileSync(path, publisher.repository.bootstrapRoot);
    return true;
  }
  const named = [...harmed].filter(
    (path) => text.includes(path) && fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined,
  );
  for (const path of named) {
    log.event(`  by hand: ${path} is removed`);
    log.count('removed by hand');
    fs.rmSync(path, { recursive: true, force: true });
  }
  return named.length > 0;
}

function endOfHistory({ places }: World): string {
  const { history } = places.paths;
  const stat = fs.lstatSync(history);
  if (!stat.isFile() || stat.size > 20_000_000) return '';
  return fs.readFileSync(history, 'utf8').slice(-200_000);
}
