# A node of another language: it uses a store of a scanode node twice, by scanode's Erlang application and by plain messages, each of which opens a
# store, writes 1,000 rows, reads one, scans all and closes it, and prints a line for each. What is not as it should be raises.
#
#     elixir --name NAME -pa EBIN peer.exs COOKIE-FILE NODE
defmodule ByApplication do
  def run(node) do
    {:ok, db} = :scanode.open("from_elixir", node: node)
    IO.puts("opened")
    :ok = :scanode.write(db, for(i <- 0..999, do: {:put, Rows.key(i), Rows.value(i)}), sync: true)
    IO.puts("wrote 1000 rows")
    {:ok, "00500"} = :scanode.get(db, "key00500")
    IO.puts("got one row")

    rows =
      :scanode.fold(db, fn {key, value}, n -> ^key = Rows.key(n); ^value = Rows.value(n); n + 1 end, 0, %{max_batch_bytes: 4096, max_unacked_bytes: 8192})

    IO.puts("scanned #{rows} rows in batches")
    :ok = :scanode.close(db)
    IO.puts("closed")
  end
end

defmodule ByMessages do
  def run(node) do
    server = {:scanode, node}
    {:ok, id} = GenServer.call(server, {:open, "from_elixir_too", %{}})
    IO.puts("opened")
    :ok = GenServer.call(server, {:write, id, for(i <- 0..999, do: {:put, Rows.key(i), Rows.value(i)}), %{sync: true}})
    IO.puts("wrote 1000 rows")
    {:ok, "00500"} = GenServer.call(server, {:get, id, "key00500"})
    IO.puts("got one row")
    ref = make_ref()
    send(server, {:scan, {self(), ref}, id, %{max_batch_bytes: 4096, max_unacked_bytes: 8192}})
    {rows, batches} = scan(server, ref, 0, 0)
    true = batches > 1
    IO.puts("scanned #{rows} rows in batches")
    :ok = GenServer.call(server, {:close, id})
    IO.puts("closed")
  end

  defp scan(server, ref, rows, batches) do
    receive do
      {:scan_batch, ^ref, bin} ->
        batch = :erlang.binary_to_term(bin, [:safe])
        ^batch = for i <- rows..(rows + length(batch) - 1), do: {Rows.key(i), Rows.value(i)}
        send(server, {:scan_ack, ref, byte_size(bin)})
        scan(server, ref, rows + length(batch), batches + 1)

      {:scan_end, ^ref, %{rows: ^rows, batches: ^batches}} ->
        {rows, batches}
    end
  end
end

defmodule Rows do
  def key(i), do: "key" <> value(i)
  def value(i), do: String.pad_leading(Integer.to_string(i), 5, "0")
end

[cookie_file, node] = System.argv()
# Not on the command line, where everybody can read it.
true = Node.set_cookie(cookie_file |> File.read!() |> String.trim() |> String.to_atom())
node = String.to_atom(node)
ByApplication.run(node)
ByMessages.run(node)
