// A regular expression of the configuration on a text that somebody else wrote: `(a+)+$` on the wrong forty letters
// runs for years and would block the whole agent. Owns the bound in time; the texts are the caller's to bound.
import vm from 'node:vm';

/** `no-verdict` when it would take longer, or needs more memory, than it may. */
export type PatternVerdict = 'yes' | 'no' | 'no-verdict';

export interface BoundedPattern {
  test(text: string): PatternVerdict;
  /** @returns a test for the parts of one text: all together have ten times the time of one, or thousands would add up */
  forParts(): (part: string) => PatternVerdict;
  /** @returns the line in which the first match begins, at most 200 characters of it; undefined without a match */
  find(text: string): { readonly line: string } | undefined | 'no-verdict';
}

const maxTestMs = 100;
/** Thousands of parts, each with what a start costs, take more than one text. */
const partsFactor = 10;
const maxLineCharacters = 200;
/** Where the time ran out without processor time of this process: the machine was busy, or slept. */
const maxTries = 3;
/** Two, because one garbage collection during the test can take the whole time. */
const maxOwnTimeouts = 2;

/**
 * `^` and `$` match at lines; `usedMs` is the processor's time that this process has used.
 * @throws SyntaxError when the source is not a regular expression
 */
export function boundedPattern(
  source: string,
  { timeoutMs = maxTestMs, usedMs = processorMs } = {},
): BoundedPattern {
  // Its syntax is judged here: what the context throws is not our SyntaxError.
  new RegExp(source, 'mu');
  // V8 stops a regular expression only where it stops a whole script.
  const context = vm.createContext({ source, text: '' });
  vm.runInContext('const pattern = new RegExp(source, "mu")', context);
  const script = new vm.Script('pattern.exec(text)?.index');
  const indexIn = (text: string, timeout: number): number | undefined | 'no-verdict' => {
    context['text'] = text;
    let ownTimeouts = 0;
    for (let tries = 1; tries <= maxTries && ownTimeouts < maxOwnTimeouts; tries += 1) {
      const before = usedMs();
      try {
        const index: unknown = script.runInContext(context, { timeout });
        return typeof index === 'number' ? index : undefined;
      } catch {
        // What the script throws is an error of that context, or the end of its time: no verdict, either way.
        if (usedMs() - before >= timeout / 2) ownTimeouts += 1;
      }
    }
    return 'no-verdict';
  };
  return {
    test: (text) => verdictOf(indexIn(text, timeoutMs)),
    forParts: () => {
      let leftMs = partsFactor * timeoutMs;
      return (part) => {
        const before = usedMs();
        const oneMs = Math.min(timeoutMs, Math.floor(leftMs));
        const verdict = oneMs < 1 ? 'no-verdict' : verdictOf(indexIn(part, oneMs));
        leftMs -= usedMs() - before;
        return verdict;
      };
    },
    find: (text) => {
      const index = indexIn(text, timeoutMs);
      return typeof index === 'number' ? { line: lineAt(text, index) } : index;
    },
  };
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function verdictOf(index: number | undefined | 'no-verdict'): PatternVerdict {
  if (index === 'no-verdict') return index;
  return index === undefined ? 'no' : 'yes';
}

function lineAt(text: string, index: number): string {
  // Not from -1: that counts as 0, where a line end of the first line may be.
  const start = index === 0 ? 0 : text.lastIndexOf('\n', index - 1) + 1;
  const end = text.indexOf('\n', index);
  return text.slice(start, end === -1 ? undefined : end).slice(0, maxLineCharacters);
}
