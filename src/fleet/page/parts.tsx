// The small parts that every page is made of: times, names that others chose, badges, tables that scroll. They hold what is
// hostile: a name is shown with its invisible characters written out, apart from the direction of the text around it.
import type { ComponentChildren, VNode } from 'preact';
import { isoTime } from '../../core/text/iso-time.js';
import { printable } from '../../core/text/printable.js';
import { timeText } from './words.js';

export type Tone = 'ok' | 'warning' | 'critical' | 'quiet';

/** A time, for people and programs. */
export function Moment({ atMs }: { readonly atMs: number }): VNode {
  return <time datetime={isoTime(atMs)}>{timeText(atMs)}</time>;
}

/** Text of others: a name, a line, a label. */
export function Foreign({ text }: { readonly text: string }): VNode {
  return <bdi class="foreign">{printable(text)}</bdi>;
}

/** The word says what the colour says. */
export function Badge({ tone, text }: { readonly tone: Tone; readonly text: string }): VNode {
  return <span class={`badge ${tone}`}>{text}</span>;
}

/** A part of a page under a heading that names it. */
export function Section(props: {
  readonly id: string;
  readonly title: string;
  readonly children: ComponentChildren;
}): VNode {
  return (
    <section aria-labelledby={props.id}>
      <h2 id={props.id}>{props.title}</h2>
      {props.children}
    </section>
  );
}

export type Column = string | { readonly right: string };

/** Shown before the cell where rows are stacked. */
function nameOf(column: Column | undefined): string | undefined {
  return typeof column === 'object' ? column.right : column;
}

/**
 * A table that scrolls inside its own frame on a narrow screen, by keyboard too.
 * @param caption what it is, for who does not see where it stands
 */
export function Table(props: {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly ComponentChildren[])[];
}): VNode {
  const { caption, columns, rows } = props;
  const isRight = (index: number): boolean => typeof columns[index] !== 'string';
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls it by the arrow keys
    <section class="scroll" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th scope="col" class={isRight(index) ? 'right' : undefined}>
                {typeof column === 'string' ? column : column.right}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((cell, index) =>
                index === 0 ? (
                  <th scope="row">{cell}</th>
                ) : (
                  <td class={isRight(index) ? 'right' : undefined} data-label={nameOf(columns[index])}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
