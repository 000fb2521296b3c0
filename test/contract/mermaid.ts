// Draws the table of the cycle as a Mermaid state diagram, by asking it about every state and event. Owns no
// knowledge of steps: what it draws is what the table answers.
import {
  type CycleEvent,
  type CycleState,
  firstStep,
  transition,
} from '../../src/core/cycle/sync-machine.js';

const eventTypes = ['done', 'nothing', 'stopped', 'retried', 'outdated'];

function nameOf(state: CycleState): string {
  return state.name === 'running' ? state.step : state.name;
}

/** @returns the lines of the diagram, transitions in the order in which they are met */
export function drawMachine(): string {
  const lines = new Map<string, string[]>();
  const seen = new Set<string>();
  const queue: CycleState[] = [{ name: 'running', step: firstStep }];
  for (let state = queue.shift(); state !== undefined; state = queue.shift()) {
    const from = nameOf(state);
    if (seen.has(from)) continue;
    seen.add(from);
    for (const type of eventTypes) {
      const next = transition(state, { type, outcome: 'failed' } as CycleEvent);
      if (next === undefined) continue;
      const arrow = `${from} --> ${nameOf(next)}`;
      lines.set(arrow, [...(lines.get(arrow) ?? []), type]);
      queue.push(next);
    }
  }
  const arrows = [...lines].map(([arrow, types]) => `  ${arrow}: ${types.join(', ')}`);
  return [
    'stateDiagram-v2',
    `  [*] --> ${firstStep}`,
    ...arrows,
    '  restoring --> [*]',
    '  ended --> [*]',
  ].join('\n');
}
