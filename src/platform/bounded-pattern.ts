// Tests a regular expression of the configuration on untrusted text within a time limit: `(a+)+$` on forty characters could run for
// years and block the agent. Owns the bound of time; the caller bounds the text.
import vm from 'node:vm';

/** `no-verdict`: the test exceeded its bound of time or memory. */
export type PatternVerdict = 'match' | 'no-match' | 'no-verdict';

export interface BoundedPattern {
  test(text: string): PatternVerdict;
  /** @returns a test for the parts of one text. All parts together have ten times the time of one text. */
  forParts(): (part: string) => PatternVerdict;
  /** @returns the line in which the first match begins, cut to 200 characters; undefined without a match */
  find(text: string): { readonly line: string } | undefined | 'no-verdict';
}

const maxTestMs = 100;
/** More time for parts, because each test has a cost to start. */
const partsFactor = 10;
const maxLineCharacters = 200;
/** Attempts if the time ran out without processor time of this process, because the machine was busy or suspended. */
const maxTries = 3;
/** Timeouts with processor time of this process. Two, because one garbage collection can take the whole time of a test. */
const maxOwnTimeouts = 2;

/**
 * `^` and `$` match at line ends. `usedMs` returns the processor time of this process in milliseconds.
 * @throws SyntaxError if the source is not a regular expression
 */
export function boundedPattern(
  source: string,
  { timeoutMs = maxTestMs, usedMs = processorMs } = {},
): BoundedPattern {
  // Check the syntax here, because the context throws a SyntaxError of its own realm.
  new RegExp(source, 'mu');
  // Run it in a script, because V8 can interrupt a regular expression only together with its script.
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
        // An error of the context and a timeout are both no verdict.
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
  return index === undefined ? 'no-match' : 'match';
}

function lineAt(text: string, index: number): string {
  // Do not search from -1, which means 0, because the text may begin with a line end.
  const start = index === 0 ? 0 : text.lastIndexOf('\n', index - 1) + 1;
  const end = text.indexOf('\n', index);
  return text.slice(start, end === -1 ? undefined : end).slice(0, maxLineCharacters);
}
