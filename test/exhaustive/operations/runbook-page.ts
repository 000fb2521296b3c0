// Reads a page of runbooks: every heading of the second level that has `sh` blocks is one, and every command of them
// is kept with the machine it is typed on and what the page says comes of it. Comments of HTML say to the test what
// readers see anyway in the text: `<!-- on: server; after: 351d -->` before each block, `<!-- event: NAME -->` where
// something happens that nobody types.
import { commandsIn, type PageCommand } from '../../kit/pages/page-commands.js';

export interface CommandStep {
  readonly kind: 'commands';
  /** The same commands on several machines, each with words replaced by others. */
  readonly machines: readonly { readonly name: string; readonly words: ReadonlyMap<string, string> }[];
  /** Time that has passed since the step before. */
  readonly afterMs: number;
  /** What is typed when a passphrase is asked for; and for the new one, where both are. */
  readonly typed: readonly string[];
  readonly commands: readonly PageCommand[];
}

export type RunbookStep = (
  | CommandStep
  | { readonly kind: 'event'; readonly name: string }
  /** The page says to type numbered steps of another runbook. */
  | { readonly kind: 'replay'; readonly title: string; readonly from: number; readonly to: number }
) & {
  /** Of the last `**N. ...**` above it; 0 before the first. */
  readonly number: number;
};

export interface Runbook {
  readonly title: string;
  readonly steps: readonly RunbookStep[];
}

/** @throws Error for a block that nobody is told to type, or a comment that is not understood */
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
      if (place === undefined) throw new Error(`nobody is told to type: ${body}`);
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
  if (unknown.length > 0) throw new Error(`not understood: ${unknown.join(', ')} in ${place}`);
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
  const [name = '', ...words] = text.split(' ');
  return { name, words: new Map(words.map((word) => word.split('=') as [string, string])) };
}
