// Reads a page of runbooks: each second-level heading with `sh` blocks is a runbook, and each command has its machine and its
// expected output. HTML comments give the test what the text gives readers: `<!-- on: server; after: 351d -->` before each
// block, `<!-- event: NAME -->` for an event without a command.
import { commandsIn, type PageCommand } from '../../kit/pages/page-commands.js';

export interface CommandStep {
  readonly kind: 'commands';
  /** The machines to run the commands on, each with texts to replace in them. */
  readonly machines: readonly { readonly name: string; readonly replacements: ReadonlyMap<string, string> }[];
  /** Time since the previous step. */
  readonly afterMs: number;
  /** The input for a passphrase question, and for the new passphrase when there are both. */
  readonly typed: readonly string[];
  readonly commands: readonly PageCommand[];
}

export type RunbookStep = (
  | CommandStep
  | { readonly kind: 'event'; readonly name: string }
  /** The page refers to numbered steps of another runbook. */
  | { readonly kind: 'replay'; readonly title: string; readonly from: number; readonly to: number }
) & {
  /** The number of the last `**N. ...**` above the step; 0 before the first. */
  readonly number: number;
};

export interface Runbook {
  readonly title: string;
  readonly steps: readonly RunbookStep[];
}

/** @throws Error for a block without a machine, or an unknown comment */
export function readRunbooks(page: string): Runbook[] {
  return page
    .split(/^## /m)
    .slice(1)
    .map((section) => ({ title: section.slice(0, section.indexOf('\n')), steps: stepsIn(section) }))
    .filter(({ steps }) => steps.length > 0);
}

const mark = /<!-- (event|on|replay): ([^>]*?) -->|^```(\w*)\n([\s\S]*?)^```$|^\*\*(\d+)\. /gm;

function stepsIn(section: string): RunbookStep[] {
  const steps: RunbookStep[] = [];
  let place: string | undefined;
  let number = 0;
  for (const [, kind, text = '', language, body = '', heading] of section.matchAll(mark)) {
    if (heading !== undefined) number = Number(heading);
    else if (kind === 'event') steps.push({ kind, name: text, number });
    else if (kind === 'replay') steps.push({ ...replayOf(text), number });
    else if (kind === 'on') place = text;
    else if (language === 'sh') {
      if (place === undefined) throw new Error(`no machine for the block: ${body}`);
      steps.push({ ...commandStep(place, body), number });
      place = undefined;
    }
  }
  if (place !== undefined) throw new Error(`no block follows: ${place}`);
  return steps;
}

function replayOf(text: string) {
  const [, title = '', from, to] = /^(.*), (\d+) to (\d+)$/.exec(text) ?? [];
  return { kind: 'replay' as const, title, from: Number(from), to: Number(to) };
}

function commandStep(place: string, body: string): CommandStep {
  const [names = '', ...rest] = place.split('; ');
  const settings = new Map(rest.map((one) => one.split(': ') as [string, string]));
  const unknown = [...settings.keys()].filter((key) => !['after', 'typed', 'also'].includes(key));
  if (unknown.length > 0) throw new Error(`unknown settings: ${unknown.join(', ')} in ${place}`);
  const others = settings.get('also')?.split(', ') ?? [];
  return {
    kind: 'commands',
    machines: [names, ...others].map(machineOf),
    afterMs: Number(/^(\d+)d$/.exec(settings.get('after') ?? '0d')?.[1]) * 86_400_000,
    typed: settings.get('typed')?.split(' ') ?? [],
    commands: commandsIn(body),
  };
}

/** `ben anna=ben root-1=root-2` */
function machineOf(text: string): CommandStep['machines'][number] {
  const [name = '', ...replacements] = text.split(' ');
  return { name, replacements: new Map(replacements.map((pair) => pair.split('=') as [string, string])) };
}
