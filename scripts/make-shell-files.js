// Makes the man pages and the completion of bash, zsh and fish from the table of commands, after a build: in dist/share, or the
// given directory. Writes files only; the module of each command describes it.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { commands } = await import('../dist/src/cli/run.js');
const { environmentName } = await import('../dist/src/cli/console/flag-environment.js');
const { commonFlags } = await import('../dist/src/cli/console/flags.js');
const { topicNames, topicText } = await import('../dist/src/cli/console/help-topics.js');
const { errorCodes } = await import('../dist/src/core/error-codes.js');
const { writVersion } = await import('../dist/src/core/version.js');

/** @returns each command with its flags and arguments, as plain values */
async function readTable() {
  return Promise.all(
    commands.map(async ({ name, summary, group, load }) => {
      const { command } = await load();
      const { flags, args = [], firstArguments = [], examples, exitCodes } = command;
      const options = Object.values({ ...flags, ...commonFlags }).map((option) => ({
        shown: option.flags,
        names: [option.short, option.long].filter((one) => one !== undefined),
        text: option.description,
        variable: environmentName(name, option),
        takesValue: option.required || option.optional,
        choices: option.argChoices ?? [],
        isPlace: /<[^>]*(?:file|dir|path)[^>]*>/.test(option.flags),
      }));
      const place = name.split(' ').length + 1;
      return {
        name,
        summary,
        group,
        options,
        args,
        argument: { words: firstArguments, place },
        examples,
        exitCodes,
      };
    }),
  );
}

/** Text for troff: no line is a request, and a hyphen that is typed is one that can be copied. */
function roff(text) {
  const escaped = text.replace(/\\/g, '\\e').replace(/-/g, '\\-');
  return escaped.replace(/^([.'])/gm, '\\&$1');
}

const title = (page, section = 1) =>
  `.TH "${page.toUpperCase()}" "${section}" "" "writ ${writVersion}" "Writ"`;

function commandPage({ name, summary, args, options, examples, exitCodes }) {
  const words = args.map(([word]) => word).join(' ');
  const page = `writ-${name.replace(' ', '-')}`;
  return [
    title(page),
    `.SH NAME\n${roff(page)} \\- ${roff(summary)}`,
    `.SH SYNOPSIS\n.B ${roff(`writ ${name}`)}\n${roff(`[options] ${words}`.trim())}`,
    ...(args.length === 0 ? [] : ['.SH ARGUMENTS', ...args.map(([word, text]) => item(word, text))]),
    '.SH OPTIONS',
    ...options.map(({ shown, text, variable }) =>
      item(shown, variable === undefined ? text : `${text} (environment: ${variable})`),
    ),
    '.SH EXAMPLES\n.nf',
    ...examples.map((line) => roff(line)),
    '.fi\n.SH EXIT STATUS',
    ...exitCodes.map((line) => {
      const [code = '', ...text] = line.split(/ {2,}/);
      return item(code, text.join('  '));
    }),
    '.SH SEE ALSO\n.BR writ (1)\n',
  ].join('\n');
}

function item(term, text) {
  return `.TP\n.B ${roff(term)}\n${roff(text)}`;
}

function mainPage(table) {
  const headings = [...new Set(table.map(({ group }) => group))];
  return [
    title('writ'),
    '.SH NAME\nwrit \\- deliver signed policy to hosts and prove that it took effect',
    '.SH SYNOPSIS\n.B writ\nCOMMAND [options]',
    ...headings.flatMap((heading) => [
      `.SH ${heading.replace(':', '').toUpperCase()} COMMANDS`,
      ...table
        .filter(({ group }) => group === heading)
        .map(({ name, summary }) => item(`writ ${name}`, `${summary}; writ-${name.replace(' ', '-')}(1)`)),
    ]),
    ...topicNames.flatMap((topic) => [
      `.SH ${topic.replace('-', ' ').toUpperCase()}\n.nf\n${roff(topicText(topic).trimEnd())}\n.fi`,
    ]),
    '.SH FILES',
    item('/etc/writ/agent.yaml', 'configuration of a host'),
    item('/var/lib/writ', 'state of a host; policy/current below it is the active policy'),
    '',
  ].join('\n');
}

const flagsOf = ({ options }) => options.flatMap(({ names }) => names).join(' ');
const firstWords = (table) => [...new Set(table.map(({ name }) => name.split(' ')[0])), 'help'];
const secondWords = (table, first) =>
  table
    .map(({ name }) => name.split(' '))
    .filter(([a, b]) => a === first && b)
    .map(([, b]) => b);

/** What `writ help` takes: a command, a topic, an error code. */
const helpWords = (table) => [
  ...firstWords(table).filter((word) => word !== 'help'),
  ...topicNames,
  ...Object.keys(errorCodes),
];

const bashArgument = ({ argument: { words, place } }) =>
  words.length === 0 ? '' : `; [ "$COMP_CWORD" -ne ${place} ] || argument='${words.join(' ')}'`;

function bashFile(table) {
  const groups = firstWords(table).filter((word) => secondWords(table, word).length > 0);
  const valued = [
    ...new Set(
      table.flatMap(({ options }) =>
        options.filter((one) => one.takesValue && one.choices.length === 0).flatMap(({ names }) => names),
      ),
    ),
  ];
  return `# bash completion for writ; made from its table of commands
_writ() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]} second=\${COMP_WORDS[2]} words= argument=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${firstWords(table).join(' ')} --help --version' -- "$cur"))
    return
  fi
  case $command in
${groups.map((word) => `    ${word}) if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W '${secondWords(table, word).join(' ')}' -- "$cur")); return; fi; command="$command $second" ;;`).join('\n')}
    help)
      case $COMP_CWORD-$second in
        2-*) COMPREPLY=($(compgen -W '${helpWords(table).join(' ')}' -- "$cur")) ;;
${groups.map((word) => `        3-${word}) COMPREPLY=($(compgen -W '${secondWords(table, word).join(' ')}' -- "$cur")) ;;`).join('\n')}
      esac
      return ;;
  esac
  case $prev in
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
    ${valued.join('|')}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
  esac
  case $command in
${table.map((one) => `    '${one.name}') words='${flagsOf(one)}'${bashArgument(one)} ;;`).join('\n')}
  esac
  case $cur in
    -*) COMPREPLY=($(compgen -W "$words --help" -- "$cur")) ;;
    *) if [ -n "$argument" ]; then COMPREPLY=($(compgen -W "$argument" -- "$cur")); else COMPREPLY=($(compgen -f -- "$cur")); fi ;;
  esac
}
complete -o filenames -F _writ writ
`;
}

/** Text in single quotes, of a zsh specification too: brackets and colons end parts of it. */
const zshText = (text) => text.replace(/[[\]:\\]/g, '\\$&').replaceAll("'", "'\\''");

function zshOption({ names, text, takesValue, choices, isPlace }) {
  const what = choices.length > 0 ? `:value:(${choices.join(' ')})` : `:value:${isPlace ? '_files' : ''}`;
  return names.map((name) => `'*${name}[${zshText(text)}]${takesValue ? what : ''}'`);
}

/** zsh counts the words of the command itself. */
const zshArgument = ({ argument: { words, place } }) =>
  words.length === 0 ? '' : ` '${place}:word:(${words.join(' ')})'`;

function zshFile(table) {
  const top = firstWords(table).filter((word) => word !== 'help');
  const summaryOf = (word) =>
    table.find(({ name }) => name === word)?.summary ?? secondWords(table, word).join(', ');
  return `#compdef writ
# zsh completion for writ; made from its table of commands
_writ() {
  local -a names
  if (( CURRENT == 2 )); then
    names=(
${top.map((word) => `      '${word}:${zshText(summaryOf(word))}'`).join('\n')}
      'help:help on a command or a topic'
    )
    _describe command names
    return
  fi
  local command=$words[2]
  case $command in
${top
  .filter((word) => secondWords(table, word).length > 0)
  .map(
    (word) =>
      `    ${word}) if (( CURRENT == 3 )); then names=(${secondWords(table, word).join(' ')}); _describe command names; return; fi; command="$command $words[3]" ;;`,
  )
  .join('\n')}
    help)
      names=()
      case $CURRENT-$words[3] in
        3-*) names=(${helpWords(table).join(' ')}) ;;
${top
  .filter((word) => secondWords(table, word).length > 0)
  .map((word) => `        4-${word}) names=(${secondWords(table, word).join(' ')}) ;;`)
  .join('\n')}
      esac
      _describe topic names
      return ;;
  esac
  case $command in
${table.map((one) => `    '${one.name}') _arguments ${one.options.flatMap(zshOption).join(' ')}${zshArgument(one)} '*:file:_files' ;;`).join('\n')}
  esac
}
_writ "$@"
`;
}

const fishText = (text) => `'${text.replace(/[\\']/g, '\\$&')}'`;

function fishFile(table) {
  const groups = firstWords(table).filter((word) => secondWords(table, word).length > 0);
  const lines = ['# fish completion for writ; made from its table of commands'];
  for (const word of firstWords(table).filter((one) => one !== 'help')) {
    const below = secondWords(table, word);
    const summary = table.find(({ name }) => name === word)?.summary ?? below.join(', ');
    lines.push(`complete -c writ -n __fish_use_subcommand -f -a ${word} -d ${fishText(summary)}`);
    const seen = `__fish_seen_subcommand_from ${word}`;
    if (below.length > 0)
      lines.push(
        `complete -c writ -n '${seen}; and not __fish_seen_subcommand_from ${below.join(' ')}' -f -a '${below.join(' ')}'`,
      );
  }
  lines.push(`complete -c writ -n __fish_use_subcommand -f -a help -d 'help on a command or a topic'`);
  const afterHelp = (more) => `'__fish_seen_subcommand_from help; and ${more}'`;
  lines.push(
    `complete -c writ -n ${afterHelp(`not __fish_seen_subcommand_from ${groups.join(' ')}`)} -f -a '${helpWords(table).join(' ')}'`,
  );
  for (const { name, options, argument } of table) {
    const words = name.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`);
    // `status` is a command, and one of `repo`.
    const alone = words.length === 1 ? [`not __fish_seen_subcommand_from ${groups.join(' ')}`] : [];
    const when = [...words, ...alone].join('; and ');
    const given = argument.words.join(' ');
    if (given !== '')
      lines.push(
        `complete -c writ -n '${when}; and not __fish_seen_subcommand_from ${given}' -f -a '${given}'`,
      );
    for (const { names, text, takesValue, choices, isPlace } of options) {
      const flags = names
        .map((one) => (one.startsWith('--') ? `-l ${one.slice(2)}` : `-s ${one.slice(1)}`))
        .join(' ');
      const value = !takesValue
        ? ''
        : choices.length > 0
          ? ` -x -a '${choices.join(' ')}'`
          : isPlace
            ? ' -r -F'
            : ' -x';
      lines.push(`complete -c writ -n '${when}' ${flags}${value} -d ${fishText(text)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

const directory = process.argv[2] ?? fileURLToPath(new URL('../dist/share', import.meta.url));
const table = await readTable();
const files = {
  'man/man1/writ.1': mainPage(table),
  ...Object.fromEntries(
    table.map((one) => [`man/man1/writ-${one.name.replace(' ', '-')}.1`, commandPage(one)]),
  ),
  'bash-completion/completions/writ': bashFile(table),
  'zsh/vendor-completions/_writ': zshFile(table),
  'fish/vendor_completions.d/writ.fish': fishFile(table),
};
rmSync(directory, { recursive: true, force: true });
for (const [path, text] of Object.entries(files)) {
  mkdirSync(join(directory, path, '..'), { recursive: true });
  writeFileSync(join(directory, path), text);
}
