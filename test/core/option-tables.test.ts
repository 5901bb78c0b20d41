import { expect, it } from "vitest";
import agents from "../../src/agent/build/options.json" with { type: "json" };
import backends from "../../src/backends/options.json" with { type: "json" };
import { ConfigurationError } from "../../src/core/errors.ts";
import { readOptions } from "../../src/core/options.ts";

const { nested, ...others } = agents;

it.each(Object.entries({ ...others, ...nested, ...backends }))(
  "knows the kind of each option of %s",
  (owner, table: Record<string, string>) => {
    for (const name of Object.keys(table)) {
      try {
        readOptions(owner, { [name]: Symbol("other") }, table);
      } catch (error) {
        expect(error, name).toBeInstanceOf(ConfigurationError);
      }
    }
  },
);
