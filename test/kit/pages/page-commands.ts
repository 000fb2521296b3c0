// Reads the commands of a page: the `sh` blocks, split into what is typed at once, each with what the page says comes of it.
// Runs nothing.

export interface PageCommand {
  /** As the page has it, without what it says of the result. */
  readonly text: string;
  /** From a comment behind the command, `# exit 3: CHECK_FAILED`; 0 without one. */
  readonly exitCode: number;
  /** What the output must contain, white space apart. */
  readonly shows: string;
}

/** One for each line, but for those that go on behind a backslash, in quotes of `<<'END'` or up to END. */
export function commandsIn(block: string): PageCommand[] {
  const whole = /^.*<<-?'?END'?.*\n[\s\S]*?^END$|^(?:.*\\\n)*.*$/gm;
  const texts = [...block.matchAll(whole)].map(([text]) => text).filter((text) => text.trim() !== '');
  return texts.map((text) => {
    const [, command = text, exit, shows = ''] = /^(.*?) +# (?:exit (\d+)(?:: |$))?(.*)$/s.exec(text) ?? [];
    return { text: command, exitCode: Number(exit ?? 0), shows };
  });
}

/** @param heading of the second or third level. @returns its text up to the next heading of that level or above */
export function sectionOf(page: string, heading: string): string {
  const from = page
    .split('\n')
    .findIndex((line) => /^##+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (from < 0) throw new Error(`the page has no section: ${heading}`);
  const lines = page.split('\n').slice(from);
  const level = lines[0]?.indexOf(' ') ?? 2;
  const to = lines.findIndex((line, at) => at > 0 && new RegExp(`^#{1,${level}} `).test(line));
  return lines.slice(0, to < 0 ? undefined : to).join('\n');
}

/** The bodies of the blocks of one language, in their order. */
export function blocksOf(text: string, language = 'sh'): string[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , body = '']) => body);
}

/** White space does not count. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
