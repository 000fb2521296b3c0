// What the reader of the demo sees, and what the demo holds against it: headings, the commands that run, facts.
// A fact that is not as expected ends the demo: what is shown here is never just decoration.
import { styleText } from 'node:util';

/** Ends the demo with exit 1 and this line. */
export class Unexpected extends Error {}

export class Screen {
  #steps = 0;

  /** A new step: its number and subject, and in plain words what is about to be seen. */
  step(subject: string, ...why: readonly string[]): void {
    this.#steps += 1;
    print(`\n${styleText('bold', `--- ${this.#steps}. ${subject} ---`, { stream: process.stdout })}`);
    for (const line of why) print(line);
  }

  /** A command, as the reader could type it. */
  command(words: readonly string[], where: 'foreground' | 'background' = 'foreground'): void {
    const line = `$ ${words.map(shellWord).join(' ')}${where === 'background' ? ' &' : ''}`;
    print(`\n${styleText('cyan', line, { stream: process.stdout })}`);
  }

  /** Output of a program, as it was. */
  output(text: string): void {
    if (text !== '') process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
  }

  /** A line of the demo's own. */
  say(line: string): void {
    print(line);
  }

  summary(): void {
    print(`\n${this.#steps} steps, all as expected`);
  }
}

/**
 * @param what the subject of the sentence, as `the exit code of writ pull`
 * @throws Unexpected
 */
export function expectEqual<Value>(what: string, actual: Value, expected: Value): void {
  const [is, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (is !== wanted) throw new Unexpected(`${what} is ${is}, expected ${wanted}`);
}

/** @throws Unexpected when a text has not all of the parts */
export function expectParts(what: string, text: string, parts: readonly string[]): void {
  const missing = parts.find((part) => !text.includes(part));
  if (missing !== undefined) throw new Unexpected(`${what} does not say "${missing}"`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
