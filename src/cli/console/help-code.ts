// The text of `writ help CODE`: the page of an error code, which needs no network, or similar codes for a mistyped one. Pure
// functions.
import { type ErrorCode, errorCodes } from '../../core/error-codes.js';
import { errorPage } from '../../core/error-docs.js';
import type { HostStateCode } from '../../core/status/host-health.js';

const columns = 80;
const nameColumns = 11;
const codes = Object.keys(errorCodes) as ErrorCode[];

/** States that `writ status` and `writ health` print in brackets like error codes. */
const hostStates: Readonly<
  Record<HostStateCode, { readonly meaning: string; readonly effect: string; readonly hint: string }>
> = {
  NOTHING_ACTIVE: {
    meaning: 'The host has no active policy: no release was activated yet.',
    effect: 'None is active. Workers use what they had before.',
    hint: '`writ pull` activates the first release, or reports why it cannot.',
  },
  NO_AGENT: {
    meaning: 'No agent runs on this host, so that nothing is pulled automatically.',
    effect: 'The active policy stays. New releases and withdrawals arrive only by `writ pull`.',
    hint: 'Start the agent (`systemctl start writ-agent`). If a timer runs `writ pull`, nothing is wrong.',
  },
  STALE: {
    meaning:
      'The host has not verified for longer than `staleAfter` that its metadata is current: the repository is not reached, or an agent that should poll does not.',
    effect: 'The active policy stays. After `maxStale` the commands of `onStale` are run.',
    hint: '`writ pull` reports why the repository is not reached.',
  },
  FROZEN: {
    meaning:
      'A role of the metadata has expired: the server does not sign snapshot and timestamp again, people have not signed their role, or a cache serves an old copy.',
    effect: 'The active policy stays. No newer release is accepted until the role is signed.',
    hint: 'Run `writ repo status` where the repository is, and `writ refresh` or `writ sign --role` for the expired role. `writ help METADATA_EXPIRED` has more.',
  },
  REFUSED: {
    meaning:
      'The host refuses the metadata that the repository serves: a signature, a version or a digest is wrong.',
    effect: 'The active policy stays. No newer release is accepted until the metadata verifies.',
    hint: '`writ status` shows the code of the refusal beside this one. `writ help CODE` explains it.',
  },
  EXPIRES_SOON: {
    meaning: 'A role of the metadata expires soon, and hosts then accept nothing new.',
    effect: 'The active policy stays, also after the expiry.',
    hint: 'For snapshot and timestamp: `writ refresh`, or start the server with the online keys. For other roles: `writ sign --role`, or `writ root rotate` for the root.',
  },
};

interface CodePage {
  readonly code: string;
  readonly kind: string;
  readonly meaning: string;
  readonly effect: string;
  readonly hint: string;
}

function pageOf(name: string): CodePage | undefined {
  const typed = codeLike(name);
  const code = codes.find((one) => one === typed);
  if (code !== undefined) {
    const { kind, exit, meaning, effect, hint } = errorPage(code);
    return { code, kind: `${kind}, ${exit}`, meaning, effect, hint };
  }
  if (!Object.hasOwn(hostStates, typed)) return undefined;
  const kind = 'a state of the host, no error';
  return { code: typed, kind, ...hostStates[typed as HostStateCode] };
}

/** @param name as typed, in any case. @returns the page of the error or host state with this code; undefined for another text */
export function codeText(name: string): string | undefined {
  const page = pageOf(name);
  if (page === undefined) return undefined;
  const { code, kind, meaning, effect, hint } = page;
  const rows = [
    ['Kind', kind],
    ['Policy', effect],
    ['What to do', hint],
  ] as const;
  return [
    code,
    '',
    ...wrapped(meaning, columns),
    '',
    ...rows.flatMap(([title, text]) =>
      wrapped(text, columns - nameColumns - 1).map(
        (line, index) => `${(index === 0 ? title : '').padEnd(nameColumns)} ${line}`,
      ),
    ),
    '',
  ].join('\n');
}

const maxNear = 5;
/** Longer than any code: no similar code is searched for a longer text. */
const maxName = 60;

/** @returns at most five similar codes, the nearest first: those that contain the text, else those that differ by a few characters */
export function nearCodes(name: string): readonly ErrorCode[] {
  const typed = codeLike(name);
  if (typed.length < 3 || typed.length > maxName) return [];
  const having = codes.filter((code) => code.includes(typed));
  if (having.length > 0) return having.slice(0, maxNear);
  return codes
    .map((code) => ({ code, steps: editDistance(typed, code) }))
    .filter(({ code, steps }) => steps <= Math.max(2, code.length / 4))
    .toSorted((a, b) => a.steps - b.steps)
    .slice(0, maxNear)
    .map(({ code }) => code);
}

function codeLike(name: string): string {
  return name.toUpperCase().replaceAll('-', '_');
}

/** Characters to add, leave out or change (Levenshtein), one row of the table at a time. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [line, character] of [...from].entries()) {
    const next = [line + 1];
    for (let at = 0; at < to.length; at += 1) {
      const changed = (row[at] ?? 0) + (character === to[at] ? 0 : 1);
      next.push(Math.min(changed, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const token of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + token.length <= width)
      lines[lines.length - 1] = `${last} ${token}`;
    else lines.push(token);
  }
  return lines;
}
