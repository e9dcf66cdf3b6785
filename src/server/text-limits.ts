import { Lexer, Source, TokenKind } from 'graphql';
import type { PetqlError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { limitExceeded } from './limit-exceeded.ts';

/**
 * Checks a document's text before it is parsed. Parsing and validation go down into lists, objects and selections by
 * calling themselves, so that thousands of brackets in each other are more than the stack holds; and each error of a
 * document looks for its line from the text's start, so that as many lines as bytes cost seconds.
 *
 * @returns the LIMIT_EXCEEDED error of the first limit that the text is past, or undefined; what is no GraphQL is for the
 * parser to say.
 */
export function textLimitError(text: string, { maxTokens, maxDepth }: Limits): PetqlError | undefined {
  const lexer = new Lexer(new Source(text));
  const tooLong = () => lexer.line > maxTokens && limitExceeded('tokens', maxTokens);
  let open = 0;
  let openOutside = 0;
  try {
    for (let tokens = 1; lexer.advance().kind !== TokenKind.EOF; tokens += 1) {
      if (tokens > maxTokens) return limitExceeded('tokens', maxTokens);
      switch (lexer.token.kind) {
        case TokenKind.PAREN_L:
          [openOutside, open] = [open, 0];
          break;
        case TokenKind.PAREN_R:
          open = openOutside;
          break;
        case TokenKind.BRACE_L:
        case TokenKind.BRACKET_L:
          open += 1;
          if (open > maxDepth) return limitExceeded('depth', maxDepth);
          break;
        case TokenKind.BRACE_R:
        case TokenKind.BRACKET_R:
          open -= 1;
          break;
        default:
      }
    }
  } catch {
    return tooLong() || undefined;
  }
  return tooLong() || undefined;
}
