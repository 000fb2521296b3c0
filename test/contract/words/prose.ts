// The prose of a document: what a person reads as sentences. Code, addresses and comments of HTML are blanked with
// spaces, so that a place in the prose is the same place in the document. Judges nothing.

/** @returns the Markdown without code blocks, code spans, HTML comments, names of tests and the targets of links */
export function proseOfMarkdown(text: string): string {
  return [
    /`test\/[^`\s]+\.ts`(?: "[^"\n]*",?)+/g,
    /^( *)(```|~~~)[\s\S]*?^ *\2.*$/gm,
    /<!--[\s\S]*?-->/g,
    /(`+)[^`][\s\S]*?\1/g,
    /\]\([^)\s]*\)/g,
  ].reduce((rest, pattern) => rest.replace(pattern, blank), text);
}

/** @returns only what follows a `#` at the start of a line, or after a space, without its code spans */
export function proseOfComments(text: string): string {
  return text
    .split('\n')
    .map((line) => {
      const comment = /(?:^|\s)#/.exec(line);
      return comment === null ? blank(line) : blank(line.slice(0, comment.index)) + line.slice(comment.index);
    })
    .join('\n')
    .replace(/`[^`\n]*`/g, blank);
}

/** @returns the part of a changelog that is not released yet */
export function unreleased(changelog: string): string {
  const start = changelog.indexOf('## [Unreleased]');
  const end = changelog.indexOf('\n## [', start + 1);
  return start < 0 ? '' : changelog.slice(start, end < 0 ? undefined : end);
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}
