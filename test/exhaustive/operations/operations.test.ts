// Runs docs/operations.md command by command, on the machines and in the order of the page; each command must end as the page
// states. Events without a command (a theft, a fire, a year) are in runbook-events.ts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sampled } from '../../kit/assert/sample.js';
import { oneLine } from '../../kit/pages/page-commands.js';
import { runbookEvents } from './runbook-events.js';
import { type CommandStep, type Runbook, readRunbooks } from './runbook-page.js';
import { type Machine, machines, type RunbookWorld, runbookWorld } from './runbook-world.js';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/operations.md'), 'utf8');
const all = readRunbooks(page);
const [setUp, ...others] = all;
const runbooks = sampled(others);
const executed = new Set<string>();

async function play(world: RunbookWorld, { title, steps }: Runbook): Promise<void> {
  for (const step of steps) {
    if (step.kind === 'commands') await typeAll(world, title, step);
    else if (step.kind === 'replay') await play(world, partOf(step));
    else await (runbookEvents[step.name] ?? assert.fail(`no such event: ${step.name}`))(world);
  }
}

function partOf({ title, from, to }: { title: string; from: number; to: number }): Runbook {
  const whole = all.find((one) => one.title === title) ?? assert.fail(`no such runbook: ${title}`);
  const steps = whole.steps.filter(({ number }) => number >= from && number <= to);
  assert.ok(steps.length > 0, `${title} has no steps ${from} to ${to}`);
  // The time of the earlier steps has passed already.
  return { title, steps: steps.map((step) => (step.kind === 'commands' ? { ...step, afterMs: 0 } : step)) };
}

async function typeAll(world: RunbookWorld, title: string, step: CommandStep): Promise<void> {
  await world.sleep(step.afterMs);
  for (const { name, replacements } of step.machines) {
    assert.ok(machines.includes(name as Machine), `no such machine: ${name}`);
    for (const { text, exitCode, shows } of step.commands) {
      const here = (written: string): string =>
        [...replacements].reduce((all, [from, to]) => all.replaceAll(from, to), written);
      const replaced = here(text);
      const run = await world.type(name as Machine, replaced, { typed: step.typed.map(here) });
      const transcript = `${title}: ${name}$ ${replaced}\n${run.output}`;
      assert.equal(run.exitCode, exitCode, transcript);
      assert.ok(oneLine(run.output).includes(oneLine(here(shows))), `"${shows}" is not in\n${transcript}`);
      executed.add(`${title}\n${text}`);
    }
  }
}

function commandsOf(played: readonly Runbook[]): string[] {
  return played.flatMap(({ title, steps }) =>
    steps.flatMap((step) =>
      step.kind === 'commands' ? step.commands.map(({ text }) => `${title}\n${text}`) : [],
    ),
  );
}

describe('docs/operations.md', { concurrency: 2 }, () => {
  let world: RunbookWorld;
  before(async () => {
    world = await runbookWorld();
    await play(world, setUp ?? assert.fail('the page has no runbook'));
    await world.stopAll();
  });
  after(() => world[Symbol.asyncDispose]());

  for (const runbook of runbooks) {
    it(runbook.title, async () => {
      await using own = await world.copy();
      const started = await own.type('server', 'systemctl start writ-server');
      assert.equal(started.exitCode, 0, started.output);
      await play(own, runbook);
    });
  }
});

describe('the test of docs/operations.md', () => {
  it('runs every command of the page', () => {
    const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, body = '']) => body);
    assert.equal(page.split('```sh').length - 1, blocks.length);
    const written = commandsOf(all);
    const played = commandsOf(all.filter((one) => one === setUp || runbooks.includes(one)));
    assert.deepEqual(
      played.filter((line) => !executed.has(line)),
      [],
    );
    assert.deepEqual(
      [...executed].filter((line) => !written.includes(line)),
      [],
    );
    // Counts the lines that begin a command, independent of runbook-page.ts.
    const begun = blocks.flatMap((body) =>
      body
        .replace(/<<'?END'?.*\n[\s\S]*?^END$/gm, '')
        .replaceAll('\\\n', '')
        .split('\n')
        .filter((line) => line.trim() !== ''),
    );
    assert.equal(written.length, begun.length);
  });

  it('finds every runbook that the page links to', () => {
    const anchors = page
      .split('\n')
      .filter((line) => line.startsWith('## '))
      .map((line) => `#${line.slice(3).toLowerCase().replaceAll(' ', '-')}`);
    const sent = [...page.matchAll(/\]\((#[^)]+)\)/g)].map(([, anchor = '']) => anchor);
    assert.deepEqual(
      sent.filter((anchor) => !anchors.includes(anchor)),
      [],
    );
  });

  it('uses every event of runbook-events.ts', () => {
    const named = new Set([...page.matchAll(/<!-- event: (.*?) -->/g)].map(([, name]) => name));
    assert.deepEqual([...named].sort(), Object.keys(runbookEvents).sort());
  });
});
