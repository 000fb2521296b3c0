// Reads the commands of a page: its `sh` blocks, split into commands, each with the result that the page states.

export interface PageCommand {
  /** The command without the comment about its result. */
  readonly text: string;
  /** Exit code of a comment after the command, `# exit 3: CHECK_FAILED`; 0 without one. */
  readonly exitCode: number;
  /** Text that the output must contain, compared without white space. */
  readonly shows: string;
}

/** @returns a command for each line; lines after a backslash, in quotes or up to the END of `<<'END'` belong to one command */
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

/** @returns the bodies of the blocks of one language, in order */
export function blocksOf(text: string, language = 'sh'): string[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , body = '']) => body);
}

/** @returns the text with single spaces as white space */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
