// A regular expression of the configuration on a text that somebody else wrote: `(a+)+$` on the wrong forty letters
// runs for years and would hold up the whole agent. Owns the bound in time; the texts are the caller's to bound.
import vm from 'node:vm';

export interface BoundedPattern {
  /** @returns `no-verdict` when it would take longer, or needs more memory, than it may */
  test(text: string): 'yes' | 'no' | 'no-verdict';
}

const maxTestMs = 100;

/**
 * `^` and `$` match at lines.
 * @throws SyntaxError when the source is no regular expression
 */
export function boundedPattern(source: string): BoundedPattern {
  // Its syntax is judged here: what the context throws is no SyntaxError of ours.
  new RegExp(source, 'mu');
  // V8 stops a regular expression only where it stops a whole script.
  const context = vm.createContext({ source, text: '' });
  vm.runInContext('const pattern = new RegExp(source, "mu")', context);
  const script = new vm.Script('pattern.test(text)');
  return {
    test: (text) => {
      context['text'] = text;
      try {
        return script.runInContext(context, { timeout: maxTestMs }) === true ? 'yes' : 'no';
      } catch {
        // What the script throws is an error of that context, or the end of its time: no verdict, either way.
        return 'no-verdict';
      }
    },
  };
}
