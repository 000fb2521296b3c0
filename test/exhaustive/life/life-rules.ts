// What must hold behind every event, and what must become of the host once everything is right again. Owns the judgement.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { type FoundTree, readActivePolicy } from './life-policy.js';
import { bundles } from './life-publisher.js';
import { judgeText, type World } from './life-world.js';

export interface Rules {
  /** Behind each event. */
  look(): void;
  /** Everything is right again: one pull brings the newest, whatever was before. */
  calm(): Promise<void>;
}

const by = 'life';
/** docs/adr/0048-bake-time.md: the longest time between two activations of a bundle whose releases did not settle. */
const maxGapMs = 3_600_000;
/** One for the bake time of the active release, one for the gap after restores of each bundle. */
const maxGapWaits = 3;

export function lifeRules(world: World): Rules {
  const serials = new Map<string, number>();
  return {
    look: () => {
      const mayGoBack = world.isPolicyHarmed || world.ends.splice(0).some(isWayBack);
      for (const tree of activePolicy(world) ?? []) {
        judgeTree(world, tree);
        const before = serials.get(tree.bundle) ?? 0;
        if (tree.serial < before && !mayGoBack)
          world.story.violate(`${tree.bundle} went from ${before} back to ${tree.serial}`);
        serials.set(tree.bundle, tree.serial);
      }
    },
    calm: () => calm(world),
  };
}

/** Only these bring an older release. */
function isWayBack({ result: { type, trigger, outcome } }: CycleEnd): boolean {
  return (
    type !== 'pull.result' ||
    trigger === 'recovery' ||
    trigger === 'repair' ||
    outcome === 'rolled-back' ||
    outcome === 'blocked'
  );
}

/** @returns undefined where a harm by hand lets nobody say what a reader must find */
function activePolicy({ places, story, isPolicyHarmed }: World): FoundTree[] | undefined {
  if (isPolicyHarmed) return undefined;
  try {
    story.count('looks of a reader');
    return readActivePolicy(places.paths);
  } catch (error) {
    story.violate(`a reader finds no policy: ${error}`);
    return undefined;
  }
}

function judgeTree({ story, publisher }: World, { bundle, serial, digest }: FoundTree): void {
  const kind = publisher.kindOf(bundle, digest);
  if (kind === undefined) story.violate(`${bundle} ${serial} is no whole release`);
  else if (kind === 'refused') story.violate(`${bundle} ${serial} is active, which a check refuses`);
}

async function calm(world: World): Promise<void> {
  const { story, publisher, drive, places } = world;
  story.event('calm');
  setRight(world);
  world.configure();
  await liveAgain(world);
  world.agent().reload();
  for (const worker of world.workers) worker.beThere();
  await drive.pass(10_000);
  for (const bundle of bundles) publisher.publish(bundle, 'good');
  await world.ask({ type: 'resume', by });
  await world.ask({ type: 'verify', repair: true, by });
  if (!(await pullsNewest(world))) await byHand(world);
  if (fs.existsSync(places.paths.history)) judgeText(story, 'the history', endOfHistory(world));
  world.isPolicyHarmed = false;
  story.count('calms');
}

function setRight({ server, clock, publisher, workers, agent }: World): void {
  server.fault = undefined;
  server.wrongByMs = 0;
  clock.setWrongBy(0);
  publisher.setWrongBy(0);
  agent().disk.heal();
  for (const worker of workers) worker.mood = 'right';
}

/** What keeps it from starting is a harm that its error names. */
async function liveAgain(world: World): Promise<void> {
  for (let tries = 0; world.agent().state() !== 'runs' && tries < 5; tries++) {
    const error = await world.start();
    if (error !== undefined && !removeNamed(world, `${(error as Error).stack} ${JSON.stringify(error)}`)) {
      world.story.violate(`an agent does not start, and no harm is named: ${error} ${JSON.stringify(error)}`);
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

/** @returns whether a release waited for others of its bundle to settle, and its time has come */
async function waitsForGap(
  { clock, drive, story }: World,
  result: CycleResult | undefined,
): Promise<boolean> {
  const problems = result?.bundles?.flatMap(({ problem }) => problem ?? []) ?? [];
  const ends = problems.flatMap(({ code, facts }) => (code === 'BAKE_GAP' ? Number(facts?.['untilMs']) : []));
  if (ends.length === 0) return false;
  const waitMs = Math.max(...ends) - clock.nowMs();
  if (!(waitMs <= maxGapMs)) story.violate(`a release waits ${waitMs} ms, longer than any gap`);
  story.count('gaps between releases');
  await drive.pass(Math.min(Math.max(0, waitMs), maxGapMs) + 1);
  return true;
}

async function pull(world: World): Promise<CycleResult | undefined> {
  const answer = await world.ask({ type: 'pull', force: false, by });
  world.story.event(`  pull: ${JSON.stringify(answer)?.slice(0, 900)}`);
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

/** As a person does: what the pull names is moved out of the way, and asked for again. */
async function byHand(world: World): Promise<void> {
  const { story } = world;
  for (let tries = 0; tries < 6; tries++) {
    const answer = await pull(world);
    if (isNewest(world)) return;
    if (!removeNamed(world, JSON.stringify(answer) ?? '')) break;
    await world.end();
    await liveAgain(world);
    for (const worker of world.workers) worker.beThere();
  }
  if (await pullsNewest(world)) return;
  story.violate('stuck: everything is right, and the newest is not active');
}

/** @returns whether a harmed entry was named, or what is to be put back */
function removeNamed({ harmed, story, places, publisher }: World, text: string): boolean {
  const [, root] = /copy the configured root to (trust\/roots\/\d+\.root\.json)/.exec(text) ?? [];
  if (root !== undefined) {
    const path = join(places.paths.state, root);
    story.event(`  by hand: ${path} is put back`);
    fs.mkdirSync(dirname(path), { recursive: true });
    fs.writeFileSync(path, publisher.repository.bootstrapRoot);
    return true;
  }
  const named = [...harmed].filter(
    (path) => text.includes(path) && fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined,
  );
  for (const path of named) {
    story.event(`  by hand: ${path} is removed`);
    story.count('mended by hand');
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
